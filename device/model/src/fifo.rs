//! A queue with room for `N` and no allocation.

/// First in, first out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fifo<T, const N: usize> {
    items: [Option<T>; N],
    first: usize,
    len: usize,
}

impl<T: Copy, const N: usize> Fifo<T, N> {
    /// Empty.
    pub(crate) const fn new() -> Self {
        Self { items: [None; N], first: 0, len: 0 }
    }

    /// Whether it is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many more it takes.
    pub(crate) const fn room(&self) -> usize {
        N - self.len
    }

    /// The oldest.
    pub(crate) fn front(&self) -> Option<&T> {
        self.items[self.first].as_ref()
    }

    /// The newest.
    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        let last = (self.first + self.len + N - 1) % N;
        if self.len == 0 { None } else { self.items[last].as_mut() }
    }

    /// Appends; gives the item back when full.
    pub(crate) fn push(&mut self, item: T) -> Result<(), T> {
        if self.len == N {
            return Err(item);
        }
        self.items[(self.first + self.len) % N] = Some(item);
        self.len += 1;
        Ok(())
    }

    /// Takes the oldest.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.items[self.first].take()?;
        self.first = (self.first + 1) % N;
        self.len -= 1;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::Fifo;

    #[test]
    fn full_queue_gives_the_item_back_and_keeps_order() {
        let mut fifo = Fifo::<u8, 2>::new();
        assert_eq!(fifo.pop(), None);
        assert_eq!((fifo.push(1), fifo.push(2), fifo.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(fifo.pop(), Some(1));
        assert_eq!(fifo.push(4), Ok(()));
        assert_eq!(fifo.back_mut(), Some(&mut 4));
        assert_eq!((fifo.pop(), fifo.pop(), fifo.pop(), fifo.room()), (Some(2), Some(4), None, 2));
        assert!(fifo.is_empty());
    }
}
