//! The tables agree with themselves.

use execlab_abi::engine::Engine;
use execlab_abi::{csb, descriptor::Descriptor, lab, mi, mirror, ring, wire};

#[test]
fn each_mirror_slot_and_its_register_are_inverse() {
    for slot in 0..mirror::SLOTS {
        let register = mirror::register(slot).unwrap();
        assert_eq!(mirror::slot(register), Some(slot), "register {register:#x}");
    }
    assert_eq!(mirror::register(mirror::SLOTS), None);
    const { assert!(mirror::SIZE <= 4096) };
}

#[test]
fn each_engine_register_decodes_to_its_engine() {
    for engine in Engine::ALL {
        assert_eq!(Engine::decode(engine.reg(ring::ELSP)), Some((engine, ring::ELSP)));
        assert_eq!(Engine::from_name(engine.name()), Some(engine));
    }
    assert_eq!(Engine::decode(lab::CS_BUSY), None);
}

#[test]
fn command_words_equal_those_seen_on_hardware() {
    assert_eq!(mi::USER_INTERRUPT, 0x0100_0000);
    assert_eq!(mi::ARB_CHECK, 0x0280_0000);
    assert_eq!(mi::ARB_ENABLE, 0x0400_0001);
    assert_eq!(mi::BATCH_BUFFER_END, 0x0500_0000);
    assert_eq!(mi::STORE_DWORD_GGTT, 0x1040_0002);
    assert_eq!(mi::load_register_imm(1), 0x1100_0001);
    assert_eq!(mi::BATCH_BUFFER_START_GGTT, 0x1880_0001);
    assert_eq!(mi::PIPE_CONTROL, 0x7a00_0004);
    assert_eq!(mi::semaphore_wait(mi::Compare::Equal), 0x0e40_c002);
    assert_eq!(mi::FLUSH_DW_STORE, 0x1300_4002);
}

#[test]
fn command_lengths_follow_their_length_fields() {
    assert_eq!(mi::command_dwords(mi::NOOP), Some(1));
    assert_eq!(mi::command_dwords(mi::STORE_DWORD_GGTT), Some(4));
    assert_eq!(mi::command_dwords(mi::FLUSH_DW_STORE | 1 << 7), Some(4));
    assert_eq!(mi::command_dwords(mi::PIPE_CONTROL), Some(6));
    assert_eq!(mi::command_dwords(0x6904_0000), Some(1));
    assert_eq!(mi::command_dwords(1 << 29), None);
}

#[test]
fn masked_writes_touch_only_masked_bits() {
    assert_eq!(ring::masked_apply(0xff, ring::masked_clear(0x0f)), 0xf0);
    assert_eq!(ring::masked_apply(0, ring::masked_set(0x100)), 0x100);
}

#[test]
fn csb_entries_and_indices_round_trip() {
    let entry = csb::Entry { status: 0x8002, context_id: 0x12_3456 };
    assert_eq!(csb::Entry::from_qword(entry.to_qword()), entry);
    assert_eq!(csb::next_index(csb::RESET_WRITE_INDEX), 0);
    assert_eq!(csb::next_index(5), 0);
    assert_eq!(csb::next_index(0), 1);
}

#[test]
fn a_built_descriptor_reads_back() {
    let d = Descriptor::new(0x0123_4000, 7);
    assert!(d.is_valid() && !d.force_restore());
    assert_eq!((d.lrca(), d.context_id()), (0x0123_4000, 7));
    assert!(d.with_force_restore().force_restore());
}

#[test]
fn wire_records_round_trip() {
    let irq = wire::IrqRecord { iir: [1, 2, 3, 4], sequence: 5, time_ns: u64::MAX };
    assert_eq!(wire::IrqRecord::from_bytes(&irq.to_bytes()), irq);
    let id = wire::Identity { magic: wire::MAGIC, version: 1, seed: 1 << 40, ..Default::default() };
    assert_eq!(wire::Identity::from_bytes(&id.to_bytes()), id);
    assert_eq!(wire::MAGIC.to_le_bytes(), *b"ELAB");
}
