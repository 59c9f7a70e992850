//! Output bounded where it arises: the first and the last bytes, in memory that does not grow with what lies between.

/// Keeps the first `head` and the last `tail` bytes pushed.
pub struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    ring: Vec<u8>,
    tail_limit: usize,
    /// Where in a full ring the oldest byte lies.
    oldest: usize,
    total: u64,
}

/// What was kept.
#[derive(Debug, PartialEq, Eq)]
pub struct Captured {
    /// Head, then tail.
    pub bytes: Vec<u8>,
    /// The head's length, where something is missing after it.
    pub cut: Option<u64>,
    /// How much is missing.
    pub elided: u64,
}

impl Capture {
    /// Memory is taken as output comes, up to `head + tail`.
    pub fn new(head: u64, tail: u64) -> Self {
        let clamp = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            head: Vec::new(),
            head_limit: clamp(head),
            ring: Vec::new(),
            tail_limit: clamp(tail),
            oldest: 0,
            total: 0,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(first);
        self.push_tail(&rest[rest.len().saturating_sub(self.tail_limit)..]);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let (grow, mut rest) = bytes.split_at(bytes.len().min(self.tail_limit - self.ring.len()));
        self.ring.extend_from_slice(grow);
        while !rest.is_empty() {
            let room = (self.ring.len() - self.oldest).min(rest.len());
            let (now, later) = rest.split_at(room);
            self.ring[self.oldest..self.oldest + room].copy_from_slice(now);
            self.oldest = (self.oldest + room) % self.ring.len();
            rest = later;
        }
    }

    /// What was kept of everything pushed.
    pub fn finish(self) -> Captured {
        let elided = self.total - (self.head.len() + self.ring.len()) as u64;
        let cut = (elided > 0).then_some(self.head.len() as u64);
        let mut bytes = self.head;
        bytes.extend_from_slice(&self.ring[self.oldest..]);
        bytes.extend_from_slice(&self.ring[..self.oldest]);
        Captured { bytes, cut, elided }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the definition says, without a ring.
    fn expected(all: &[u8], head: usize, tail: usize) -> Captured {
        let first = all.len().min(head);
        let last = (all.len() - first).min(tail);
        let elided = (all.len() - first - last) as u64;
        let bytes = [&all[..first], &all[all.len() - last..]].concat();
        Captured { bytes, cut: (elided > 0).then_some(first as u64), elided }
    }

    #[test]
    fn equals_the_definition_for_all_small_limits_and_chunks() {
        let all: Vec<u8> = (0..41).collect();
        for head in 0..8 {
            for tail in 0..9 {
                for length in [0, 1, head, head + tail, head + tail + 1, 41] {
                    for chunk in 1..12 {
                        let mut capture = Capture::new(head as u64, tail as u64);
                        all[..length].chunks(chunk).for_each(|bytes| capture.push(bytes));
                        assert_eq!(capture.finish(), expected(&all[..length], head, tail));
                    }
                }
            }
        }
    }

    #[test]
    fn memory_stays_within_head_and_tail() {
        let mut capture = Capture::new(10, 100);
        for _ in 0..10_000 {
            capture.push(&[7; 4096]);
        }
        assert!(capture.head.capacity() + capture.ring.capacity() < 1000);
        assert_eq!(capture.finish().elided, 40_960_000 - 110);
    }
}
