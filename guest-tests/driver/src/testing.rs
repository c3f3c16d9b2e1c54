//! Memory and requests for unit tests.
#![allow(clippy::unwrap_used, reason = "a broken bench fails its test")]

extern crate std;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::Mutex;

use execlab_abi::engine::Engine;

use crate::bus::Dma;
use crate::context::ContextHw;
use crate::request::Request;

/// Pages that no device sees, at address 0.
#[derive(Debug)]
pub(crate) struct Pages(Mutex<Vec<u8>>);

impl Pages {
    pub(crate) fn new(pages: usize) -> Self {
        Self(Mutex::new(vec![0; 4096 * pages]))
    }
    fn get<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0.lock().unwrap()[offset..offset + N].try_into().unwrap()
    }
    fn put(&self, offset: usize, data: &[u8]) {
        self.0.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
    }
}

impl Dma for Pages {
    fn pages(&self) -> usize {
        self.0.lock().unwrap().len() / 4096
    }
    fn page_addr(&self, page: usize) -> u64 {
        4096 * page as u64
    }
    fn read32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.get(offset))
    }
    fn write32(&self, offset: usize, value: u32) {
        self.put(offset, &value.to_le_bytes());
    }
    fn load32_acquire(&self, offset: usize) -> u32 {
        self.read32(offset)
    }
    fn store32_release(&self, offset: usize, value: u32) {
        self.write32(offset, value);
    }
    fn load64_acquire(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.get(offset))
    }
    fn store64_release(&self, offset: usize, value: u64) {
        self.put(offset, &value.to_le_bytes());
    }
}

/// A context's memory with a ring of one page; image at 0x10000, ring at 0x20000.
pub(crate) fn hw(engine: Engine, id: u32) -> Arc<ContextHw<Pages>> {
    Arc::new(ContextHw::new(Pages::new(2), 0x1_0000, id, engine, Pages::new(1), 0x2_0000))
}

/// A request of a new context with id `id`.
pub(crate) fn request_of(id: u32, tail: u32) -> Request<Pages> {
    Request { hw: hw(Engine::Rcs0, id), priority: 0, seqno: 1, tail, wa_tail: tail + 8 }
}

/// A request of a new context.
pub(crate) fn request(priority: i32, tail: u32) -> Request<Pages> {
    Request { priority, ..request_of(1, tail) }
}
