//! The two execlist ports as 4.16 to 4.19 kept them: a request and a count of submissions in each, and the flag
//! that the hardware has acknowledged the last write (`EXECLISTS_ACTIVE_HWACK`).

use alloc::sync::Arc;

use crate::request::Request;

/// One port: the last request of a context that was submitted, and how many ELSP writes include it.
#[derive(Debug)]
pub(crate) struct Port<D> {
    pub(crate) request: Request<D>,
    pub(crate) count: u32,
}

/// Both ports.
#[derive(Debug)]
pub(crate) struct Ports<D> {
    pub(crate) port: [Option<Port<D>>; 2],
    /// The last ELSP write was acknowledged. False right after a write: another one must not follow.
    pub(crate) hwack: bool,
    /// Index of the CSB entry read last.
    pub(crate) csb_head: u32,
}

impl<D> Ports<D> {
    pub(crate) const fn new(csb_head: u32) -> Self {
        Self { port: [None, None], hwack: true, csb_head }
    }

    /// Whether port 0 holds a request.
    pub(crate) const fn active(&self) -> bool {
        self.port[0].is_some()
    }

    /// Context id in port 0, 0 if it is empty.
    pub(crate) fn context_id(&self) -> u32 {
        self.port[0].as_ref().map_or(0, |port| port.request.hw.descriptor.context_id())
    }

    /// Puts a request into a port; a count that is there stays (`port_assign`).
    pub(crate) fn assign(&mut self, index: usize, request: Request<D>) {
        let count = self.port[index].as_ref().map_or(0, |port| port.count);
        self.port[index] = Some(Port { request, count });
    }

    /// A port's submission has been answered by an event; true when the context is out (`execlists_port_complete`).
    pub(crate) fn answered(&mut self) -> bool {
        let Some(port) = &mut self.port[0] else { return false };
        port.count = port.count.saturating_sub(1);
        if port.count > 0 {
            return false;
        }
        self.port[0] = self.port[1].take();
        true
    }
}

/// Whether two requests belong to the same context.
pub(crate) fn same_context<D>(a: &Request<D>, b: &Request<D>) -> bool {
    Arc::ptr_eq(&a.hw, &b.hw)
}
