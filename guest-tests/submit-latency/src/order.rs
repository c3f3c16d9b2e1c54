//! In which order the arms are measured.
//!
//! A *round* is the list of arms forwards and then backwards: with arms null, A, B it is `null A B B A null`. In
//! each round every arm comes twice and has the same mean position, so a drift of the machine that is linear
//! over the round hits all alike. From round to round the list is rotated by one, so that every arm has every
//! neighbour and every place. With an odd number of blocks per arm, the last round is its forward half only.

/// One block to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Round, from 0.
    pub round: u32,
    /// Index into the list of arms.
    pub arm: usize,
}

/// The whole run: each of `arms` arms `blocks` times.
pub fn slots(arms: usize, blocks: u32) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(arms * blocks as usize);
    for round in 0..blocks.div_ceil(2) {
        let turn = round as usize % arms.max(1);
        let forward = (0..arms).map(|at| Slot { round, arm: (at + turn) % arms });
        slots.extend(forward.clone());
        if blocks - 2 * round >= 2 {
            slots.extend(forward.rev());
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms_of(slots: &[Slot]) -> Vec<usize> {
        slots.iter().map(|slot| slot.arm).collect()
    }

    #[test]
    fn two_arms_and_four_blocks_give_abba_then_baab() {
        assert_eq!(arms_of(&slots(2, 4)), [0, 1, 1, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn in_each_round_all_arms_have_the_same_mean_position() {
        let slots = slots(3, 8);
        for round in 0..4 {
            let round: Vec<usize> =
                slots.iter().filter(|slot| slot.round == round).map(|slot| slot.arm).collect();
            for arm in 0..3 {
                let places: Vec<usize> = (0..6).filter(|at| round[*at] == arm).collect();
                assert_eq!(places.len(), 2);
                assert_eq!(places.iter().sum::<usize>(), 5, "{round:?}");
            }
        }
    }

    #[test]
    fn an_odd_number_of_blocks_gives_each_arm_exactly_that_many() {
        let slots = slots(3, 5);
        assert_eq!(slots.len(), 15);
        for arm in 0..3 {
            assert_eq!(slots.iter().filter(|slot| slot.arm == arm).count(), 5);
        }
        assert_eq!(slots.last().map(|slot| slot.round), Some(2));
    }

    #[test]
    fn no_arm_or_no_block_gives_nothing() {
        assert!(slots(0, 4).is_empty() && slots(3, 0).is_empty());
    }
}
