//! The priority queue of an engine: a list of requests per priority, first in first out (`i915_priolist`).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::request::Request;

/// Requests that no port has taken. Lists stay when they are empty: the few priorities in use come again.
#[derive(Debug)]
pub(crate) struct Queue<D> {
    // Highest priority first.
    lists: Vec<(i32, VecDeque<Request<D>>)>,
}

impl<D> Queue<D> {
    /// An empty queue with room for `capacity` requests of priority 0.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { lists: alloc::vec![(0, VecDeque::with_capacity(capacity))] }
    }

    /// Adds a request behind those of its priority.
    pub(crate) fn insert(&mut self, request: Request<D>) {
        let priority = request.priority;
        let at = self.lists.partition_point(|(p, _)| *p > priority);
        match self.lists.get_mut(at) {
            Some((p, list)) if *p == priority => list.push_back(request),
            _ => self.lists.insert(at, (priority, VecDeque::from([request]))),
        }
    }

    /// The request that is next.
    pub(crate) fn first(&self) -> Option<&Request<D>> {
        self.lists.iter().find_map(|(_, list)| list.front())
    }

    /// Takes the request that is next.
    pub(crate) fn pop(&mut self) -> Option<Request<D>> {
        self.lists.iter_mut().find_map(|(_, list)| list.pop_front())
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}
