//! Interrupt banks, the master, and the message.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{irq, ring};
use support::Bench;

/// Submits one request on `engine` and lets it end.
fn request(bench: &mut Bench, engine: Engine) {
    let mut context = bench.context(engine.index() as u32);
    bench.emit_request(&mut context, 1);
    bench.submit(engine, context.descriptor(), Descriptor::NULL);
    bench.settle(1_000_000);
}

#[test]
fn each_engine_raises_its_own_half_of_its_own_bank() {
    for engine in Engine::ALL {
        let mut bench = Bench::new();
        request(&mut bench, engine);
        let mut banks = [0; irq::BANKS];
        let (bank, shift) = engine.irq_bank();
        banks[bank] = (irq::USER | irq::CONTEXT_SWITCH) << shift;
        assert_eq!(std::array::from_fn(|n| bench.read(irq::iir(n))), banks);
        assert_eq!(bench.read(irq::MASTER), irq::MASTER_ENABLE | engine.master_bit());
        assert_eq!(bench.gpu.take_interrupts(bench.now, &mut bench.world), Some(banks));
        assert_eq!(bench.gpu.take_interrupts(bench.now, &mut bench.world), None);
        assert_eq!(bench.read(irq::MASTER), irq::MASTER_ENABLE);
    }
}

#[test]
fn ring_imr_masks_the_bits_of_the_engines_own_half() {
    for engine in Engine::ALL {
        let mut bench = Bench::new();
        bench.write(engine.reg(ring::IMR), engine.ring_imr(irq::USER));
        request(&mut bench, engine);
        let taken = bench.gpu.take_interrupts(bench.now, &mut bench.world).unwrap();
        assert_eq!(engine.irq_bits(&taken), irq::USER);
    }
}

#[test]
fn the_bank_mask_loses_an_identity_and_the_enable_only_keeps_it_back() {
    let engine = Engine::Vecs0;
    let (bank, _) = engine.irq_bank();
    let mut bench = Bench::new();
    bench.write(irq::imr(bank), u32::MAX);
    request(&mut bench, engine);
    bench.write(irq::imr(bank), 0);
    assert_eq!((bench.read(irq::iir(bank)), bench.world.interrupts), (0, 0));
    bench.write(irq::ier(bank), 0);
    request(&mut bench, engine);
    assert_eq!(bench.world.interrupts, 0);
    assert_eq!(bench.gpu.take_interrupts(bench.now, &mut bench.world), None);
    bench.write(irq::ier(bank), u32::MAX);
    assert_eq!(bench.world.interrupts, 1);
    assert!(bench.gpu.take_interrupts(bench.now, &mut bench.world).is_some());
}

#[test]
fn the_message_is_an_edge_and_comes_again_when_the_master_opens_on_something_pending() {
    let mut bench = Bench::new();
    request(&mut bench, Engine::Rcs0);
    assert_eq!(bench.world.interrupts, 1, "four identities, one edge");
    request(&mut bench, Engine::Bcs0);
    assert_eq!(bench.world.interrupts, 1, "the line is up already");
    // As gen8_irq_handler: master off, one bank read and cleared, master on.
    bench.write(irq::MASTER, 0);
    assert_eq!(bench.gpu.take_interrupts(bench.now, &mut bench.world), None);
    let rcs = bench.read(irq::iir(0)) & 0xffff;
    bench.write(irq::iir(0), rcs);
    bench.write(irq::MASTER, irq::MASTER_ENABLE);
    assert_eq!(bench.world.interrupts, 2);
    let left = bench.read(irq::iir(0));
    bench.write(irq::iir(0), left);
    bench.write(irq::MASTER, 0);
    bench.write(irq::MASTER, irq::MASTER_ENABLE);
    assert_eq!(bench.world.interrupts, 2, "nothing is pending any more");
}

#[test]
fn a_delayed_interrupt_is_in_no_register_before_its_time() {
    let mut bench = Bench::with_profile("name = \"i\"\n[delay]\n\"irq.deliver\" = \"7us\"\n", 1);
    let mut context = bench.context(0);
    bench.emit_request(&mut context, 1);
    bench.submit(Engine::Rcs0, context.descriptor(), Descriptor::NULL);
    assert_eq!(bench.peek(context.seqno_address()), 1);
    bench.advance(6_999);
    assert_eq!((bench.read(irq::iir(0)), bench.world.interrupts), (0, 0));
    assert_eq!(bench.gpu.take_interrupts(bench.now, &mut bench.world), None);
    bench.advance(1);
    assert_eq!(bench.read(irq::iir(0)), irq::USER | irq::CONTEXT_SWITCH);
    assert_eq!(bench.world.interrupts, 1);
}

#[test]
fn the_register_copies_say_what_a_read_says() {
    let mut bench = Bench::with_profile("name = \"i\"\n[delay]\n\"irq.deliver\" = \"1us\"\n", 1);
    request(&mut bench, Engine::Rcs0);
    let copies = bench.world.mirror.clone();
    assert!(copies.len() > 10);
    for (offset, copy) in copies {
        if offset & 0xfff != ring::TIMESTAMP {
            assert_eq!(bench.read(offset), copy, "register {offset:#x}");
        }
        assert!(execlab_abi::mirror::slot(offset).is_some(), "register {offset:#x}");
    }
}
