//! Ends what this program has started, should it be killed without a chance to do so itself.
//!
//! A second process of this very program holds one end of a pipe. It is told which process groups there are, and when
//! the other end is closed, because whoever had it is gone, it ends those that are left. Asking the system for a signal
//! on the death of a parent would need `unsafe` code, exists on Linux only, and reaches one process and not its group.
//!
//! What it cannot help: somebody who kills both, and a group that was started in the very moment before.

#[cfg(unix)]
pub(crate) use unix::{NAME, prepare, run, watch};

#[cfg(not(unix))]
pub(crate) use elsewhere::{NAME, prepare, run, watch};

#[cfg(unix)]
mod unix {
    use std::{
        collections::HashSet,
        io::{self, BufRead, Write},
        os::unix::process::CommandExt,
        process::{ChildStdin, Command, ExitCode, Stdio},
        sync::{Mutex, OnceLock, PoisonError},
        thread,
        time::{Duration, Instant},
    };

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
    use toolwire::transport::child::ChildHandle;

    /// The argument that makes this program a watchdog.
    pub(crate) const NAME: &str = "__watchdog";
    /// How long a group may take to end before it is made to.
    const PATIENCE: Duration = Duration::from_secs(1);
    /// How often it is looked whether a group is gone; the system does not tell.
    const SWEEP: Duration = Duration::from_millis(20);

    /// Has a child ended when this program is killed. Where that cannot be had, the child learns from the end of its
    /// input.
    pub(crate) fn watch(child: ChildHandle) {
        let Some(group) = child.group_id() else { return };
        if tell('+', group) {
            tokio::spawn(async move {
                child.wait().await;
                tell('-', group);
            });
        }
    }

    /// Starts the watchdog, before there is anything to watch: a child is told of as soon as it is there.
    pub(crate) fn prepare() {
        dog();
    }

    fn dog() -> Option<&'static Mutex<ChildStdin>> {
        static DOG: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();
        DOG.get_or_init(|| start().map(Mutex::new)).as_ref()
    }

    fn tell(sign: char, group: u32) -> bool {
        let Some(dog) = dog() else { return false };
        let mut pipe = dog.lock().unwrap_or_else(PoisonError::into_inner);
        // In one piece, and few of them fill no pipe.
        pipe.write_all(format!("{sign}{group}\n").as_bytes()).is_ok()
    }

    fn start() -> Option<ChildStdin> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        // A group of its own, so that what a terminal sends to this program does not reach it; and nothing of this
        // program stays open in it.
        command.arg(NAME).process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok()?.stdin.take()
    }

    /// Is the watchdog: waits for the end of standard input, and ends what is left.
    pub(crate) fn run() -> ExitCode {
        let mut groups = HashSet::new();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let group = |text: &str| text.parse().ok().and_then(Pid::from_raw).filter(|pid| !pid.is_init());
            match line.split_at_checked(1) {
                Some(("+", id)) => groups.extend(group(id)),
                Some(("-", id)) => drop(group(id).map(|group| groups.remove(&group))),
                _ => {}
            }
        }
        for group in &groups {
            let _ = kill_process_group(*group, Signal::TERM);
        }
        let deadline = Instant::now() + PATIENCE;
        while groups.iter().any(|group| test_kill_process_group(*group).is_ok()) && Instant::now() < deadline
        {
            thread::sleep(SWEEP);
        }
        for group in &groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        ExitCode::SUCCESS
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::process::ExitCode;

    use toolwire::transport::child::ChildHandle;

    /// The argument that would make this program a watchdog.
    pub(crate) const NAME: &str = "__watchdog";

    /// There is none here.
    pub(crate) fn prepare() {}

    /// There are no groups here: the child learns from the end of its input.
    pub(crate) fn watch(_: ChildHandle) {}

    /// Does nothing.
    pub(crate) fn run() -> ExitCode {
        ExitCode::SUCCESS
    }
}
