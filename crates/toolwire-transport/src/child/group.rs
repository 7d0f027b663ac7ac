//! The process group of a child: everything that it has started and that has not left the group.

#[cfg(unix)]
pub(super) use unix::Group;

#[cfg(not(unix))]
pub(super) use elsewhere::Group;

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::zombies::is_dead;
    use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};

    /// A group whose number is that of the child that leads it.
    #[derive(Debug)]
    pub(in super::super) struct Group {
        leader: Option<Pid>,
        /// Once the group was seen empty, its number may belong to somebody else.
        gone: AtomicBool,
    }

    impl Group {
        pub(in super::super) fn of(leader: Option<u32>) -> Self {
            let leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            Self { leader, gone: AtomicBool::new(false) }
        }

        /// The number of the group, which is that of the process that leads it.
        pub(in super::super) fn id(&self) -> Option<u32> {
            self.leader.and_then(|leader| u32::try_from(leader.as_raw_pid()).ok())
        }

        pub(in super::super) fn terminate(&self) {
            self.signal(Signal::TERM);
        }

        pub(in super::super) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        /// Never signals this group again.
        pub(in super::super) fn forget(&self) {
            self.gone.store(true, Ordering::SeqCst);
        }

        fn signal(&self, signal: Signal) {
            if let Some(leader) = self.present() {
                // It fails only if the group has just ended, which is what is wanted.
                let _ = kill_process_group(leader, signal);
            }
        }

        /// Whether anything is left of the group, now that its leader is gone.
        ///
        /// It must not be called while the leader runs: it would take its exit status away.
        pub(in super::super) fn is_left(&self) -> bool {
            let Some(leader) = self.present() else { return false };
            // If orphans are handed to this very process, as they are to the first one of a container, they
            // stay in the group until somebody waits for them.
            while let Ok(Some(_)) = waitpgid(leader, WaitOptions::NOHANG) {}
            let left = test_kill_process_group(leader) != Err(rustix::io::Errno::SRCH);
            if !left {
                self.forget();
            }
            left && !is_dead(leader)
        }

        fn present(&self) -> Option<Pid> {
            self.leader.filter(|_| !self.gone.load(Ordering::SeqCst))
        }
    }
}

#[cfg(unix)]
mod zombies {
    use std::fs;

    /// Whether all that is left of a group are processes that ended but that nobody has waited for.
    ///
    /// In a container whose first process does not look after orphans they stay for ever, and it would be
    /// a pity to wait for them. Only Linux tells; elsewhere the answer is no.
    pub(super) fn is_dead(group: rustix::process::Pid) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else { return false };
        let mut members = processes
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
            .filter_map(|stat| state_and_group(&stat))
            .filter(|(_, of)| *of == group.as_raw_pid())
            .map(|(state, _)| state)
            .peekable();
        members.peek().is_some() && members.all(|state| matches!(state, 'Z' | 'X'))
    }

    /// Takes `number (name) state parent group …` apart; the name may hold anything.
    fn state_and_group(stat: &str) -> Option<(char, i32)> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        Some((state, fields.nth(1)?.parse().ok()?))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_cannot_deceive() {
            assert_eq!(state_and_group("12 (a) Z 1 2) S 7 34 34 0"), Some(('S', 34)));
            assert_eq!(state_and_group("12 (sh) Z 1 99 99"), Some(('Z', 99)));
            assert_eq!(state_and_group("nonsense"), None);
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    /// There are no groups here: the child itself is ended by its supervisor.
    #[derive(Debug)]
    pub(in super::super) struct Group;

    impl Group {
        pub(in super::super) fn of(_: Option<u32>) -> Self {
            Self
        }

        pub(in super::super) fn id(&self) -> Option<u32> {
            None
        }

        pub(in super::super) fn terminate(&self) {}

        pub(in super::super) fn kill(&self) {}

        pub(in super::super) fn forget(&self) {}

        pub(in super::super) fn is_left(&self) -> bool {
            false
        }
    }
}
