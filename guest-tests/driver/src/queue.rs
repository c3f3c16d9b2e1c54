//! The priority queue of an engine: a list of requests per priority, first in first out (`i915_priolist`).
//!
//! Nodes come from a pool that grows when a context is created, so that submitting never allocates: a ring has room
//! for so many requests and no more.

use alloc::vec::Vec;

use crate::request::Request;

/// No node.
const NIL: u32 = u32::MAX;
/// The hint when any request is worth a look at the ports (`INT_MIN` in i915).
pub(crate) const ANY_PRIORITY: i32 = i32::MIN;

#[derive(Debug)]
struct Node<D> {
    request: Option<Request<D>>,
    next: u32,
}

/// The requests of one priority; never empty.
#[derive(Debug, Clone, Copy)]
struct List {
    priority: i32,
    first: u32,
    last: u32,
}

/// Room for more requests, allocated before the lock is taken.
#[derive(Debug)]
pub(crate) struct Room<D> {
    nodes: Vec<Node<D>>,
    lists: Vec<List>,
}

/// Requests that no port has taken.
#[derive(Debug)]
pub(crate) struct Queue<D> {
    nodes: Vec<Node<D>>,
    free: u32,
    // Highest priority first.
    lists: Vec<List>,
    // Each has one priority at a time, so there are no more lists than contexts.
    contexts: usize,
    /// `queue_priority` of 4.17 to 4.20: a new request is worth a look at the ports if its priority is higher.
    pub(crate) hint: i32,
}

impl<D> Queue<D> {
    /// An empty queue without room.
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL, lists: Vec::new(), contexts: 0, hint: ANY_PRIORITY }
    }

    /// Requests and contexts that there is room for.
    pub(crate) fn capacity(&self) -> (usize, usize) {
        (self.nodes.len(), self.contexts)
    }

    /// Allocates room for `requests` requests of `contexts` contexts in all. For outside the lock.
    pub(crate) fn room(requests: usize, contexts: usize) -> Room<D> {
        Room { nodes: Vec::with_capacity(requests), lists: Vec::with_capacity(contexts) }
    }

    /// Takes the room, for one more context with at most `by` requests. Gives back the old, to be freed outside the
    /// lock, or the new one if it is too small because someone else was faster.
    pub(crate) fn grow(&mut self, mut room: Room<D>, by: usize) -> Result<Room<D>, Room<D>> {
        if room.nodes.capacity() < self.nodes.len() + by || room.lists.capacity() <= self.contexts {
            return Err(room);
        }
        self.contexts += 1;
        room.nodes.append(&mut self.nodes);
        room.lists.append(&mut self.lists);
        core::mem::swap(&mut room.nodes, &mut self.nodes);
        core::mem::swap(&mut room.lists, &mut self.lists);
        for _ in 0..by {
            self.add_node();
        }
        Ok(room)
    }

    fn add_node(&mut self) {
        let at = self.nodes.len() as u32;
        self.nodes.push(Node { request: None, next: self.free });
        self.free = at;
    }

    /// Adds a request behind those of its priority.
    pub(crate) fn insert(&mut self, request: Request<D>) {
        if self.free == NIL {
            // Not reached: each context brings room for all that its ring can hold.
            self.add_node();
        }
        let priority = request.priority;
        let node = self.free;
        let slot = &mut self.nodes[node as usize];
        self.free = slot.next;
        *slot = Node { request: Some(request), next: NIL };
        let at = self.lists.partition_point(|list| list.priority > priority);
        match self.lists.get_mut(at).filter(|list| list.priority == priority) {
            Some(list) => {
                self.nodes[list.last as usize].next = node;
                list.last = node;
            }
            None => self.lists.insert(at, List { priority, first: node, last: node }),
        }
    }

    /// The request that is next.
    pub(crate) fn first(&self) -> Option<&Request<D>> {
        let list = self.lists.first()?;
        self.nodes[list.first as usize].request.as_ref()
    }

    /// Takes the request that is next.
    pub(crate) fn pop(&mut self) -> Option<Request<D>> {
        let list = self.lists.first_mut()?;
        let at = list.first;
        let node = &mut self.nodes[at as usize];
        let request = node.request.take();
        list.first = node.next;
        node.next = self.free;
        self.free = at;
        if list.first == NIL {
            self.lists.remove(0);
        }
        request
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    fn queue(capacity: usize) -> Queue<crate::testing::Pages> {
        let mut queue = Queue::new();
        assert!(queue.grow(Queue::room(capacity, 8), capacity).is_ok());
        queue
    }

    #[test]
    fn requests_come_out_by_priority_and_then_in_the_order_of_their_coming() {
        let mut queue = queue(8);
        for (priority, tail) in [(0, 1), (5, 2), (0, 3), (-3, 4), (5, 5)] {
            queue.insert(request(priority, tail));
        }
        assert_eq!(queue.first().map(|r| r.tail), Some(2));
        let order: Vec<u32> = core::iter::from_fn(|| queue.pop()).map(|r| r.tail).collect();
        assert_eq!(order, [2, 5, 1, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn nodes_are_used_again_so_that_a_bounded_number_of_requests_never_allocates() {
        let mut queue = queue(4);
        let before = (queue.nodes.capacity(), queue.lists.capacity());
        for round in 0..100 {
            for at in 0..4 {
                queue.insert(request(round % 3 - at, 0));
            }
            while queue.pop().is_some() {}
        }
        assert_eq!(queue.capacity(), (4, 1));
        assert_eq!((queue.nodes.capacity(), queue.lists.capacity()), before);
    }

    #[test]
    fn growing_keeps_what_is_queued_and_refuses_room_that_is_too_small() {
        let mut queue = queue(2);
        queue.insert(request(1, 7));
        queue.insert(request(0, 8));
        assert!(queue.grow(Queue::room(3, 8), 2).is_err());
        assert!(queue.grow(Queue::room(4, 8), 2).is_ok());
        queue.insert(request(0, 9));
        let order: Vec<u32> = core::iter::from_fn(|| queue.pop()).map(|r| r.tail).collect();
        assert_eq!(order, [7, 8, 9]);
    }
}
