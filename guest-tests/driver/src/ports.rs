//! The two execlist ports as 4.16 to 4.19 kept them: a request and a count of submissions in each, and what is known
//! about the hardware.

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
    /// `EXECLISTS_ACTIVE_HWACK`: the hardware has answered the last ELSP write. Set by idle→active and preempted,
    /// cleared by a write and by active→idle.
    pub(crate) hwack: bool,
    /// Index of the CSB entry read last.
    pub(crate) csb_head: u32,
    /// An entry did not come in time: the status page's entries are not to be trusted any more.
    pub(crate) csb_use_mmio: bool,
}

impl<D> Ports<D> {
    pub(crate) const fn new(csb_head: u32) -> Self {
        Self { port: [None, None], hwack: false, csb_head, csb_use_mmio: false }
    }

    /// `EXECLISTS_ACTIVE_USER`: port 0 holds a request.
    pub(crate) const fn active(&self) -> bool {
        self.port[0].is_some()
    }

    /// Whether ELSP may be written: nothing runs, or the last write was answered and no second context waits.
    pub(crate) const fn can_submit(&self) -> bool {
        !self.active() || (self.hwack && self.port[1].is_none())
    }

    /// Puts a request into a port; a count that is there stays (`port_assign`).
    pub(crate) fn assign(&mut self, index: usize, request: Request<D>) {
        let count = self.port[index].as_ref().map_or(0, |port| port.count);
        self.port[index] = Some(Port { request, count });
    }

    /// An event about context `id` answers one ELSP write that included it.
    pub(crate) fn answer(&mut self, id: u32) -> Answer {
        match &mut self.port[0] {
            Some(port) if port.request.hw.descriptor.context_id() == id && port.count > 0 => {
                port.count -= 1;
                if port.count == 0 { Answer::Last } else { Answer::More }
            }
            _ => Answer::Stray,
        }
    }

    /// Takes the request out of port 0 and moves port 1 up (`execlists_port_complete`).
    pub(crate) fn complete(&mut self) -> Option<Request<D>> {
        let done = self.port[0].take();
        self.port[0] = self.port[1].take();
        done.map(|port| port.request)
    }
}

/// What an event means for port 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It fits no submission.
    Stray,
    /// More events are to come for the context in port 0.
    More,
    /// It was the last one: the context is out.
    Last,
}

/// Whether two requests belong to the same context.
pub(crate) fn same_context<D>(a: &Request<D>, b: &Request<D>) -> bool {
    Arc::ptr_eq(&a.hw, &b.hw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{request, request_of};

    #[test]
    fn a_context_written_twice_is_out_after_two_answers_and_the_other_port_moves_up() {
        let mut ports = Ports::new(5);
        ports.assign(0, request_of(3, 64));
        ports.assign(1, request_of(4, 64));
        for port in ports.port.iter_mut().flatten() {
            port.count += 1;
        }
        let first = ports.port[0].as_mut().unwrap();
        first.count += 1;
        assert_eq!(ports.answer(3), Answer::More);
        assert_eq!(ports.answer(4), Answer::Stray, "port 1 cannot be answered first");
        assert_eq!(ports.answer(3), Answer::Last);
        assert_eq!(ports.complete().map(|r| r.hw.descriptor.context_id()), Some(3));
        assert_eq!(ports.answer(4), Answer::Last);
    }

    #[test]
    fn an_event_for_idle_ports_is_stray() {
        assert_eq!(Ports::<crate::testing::Pages>::new(5).answer(0), Answer::Stray);
    }

    #[test]
    fn elsp_waits_for_the_acknowledgement_and_for_a_free_second_port() {
        let mut ports = Ports::new(5);
        assert!(ports.can_submit());
        ports.assign(0, request(0, 8));
        assert!(!ports.can_submit());
        ports.hwack = true;
        assert!(ports.can_submit());
        ports.assign(1, request(0, 8));
        assert!(!ports.can_submit());
    }
}
