internal import EventLoop
internal import Glibc

/// A running monitor: one thread that watches one namespace. Everything public composes this.
package final class MonitorSession: MonitorSource {
    package let identity: MonitorIdentity
    private let mailbox: Mailbox<MonitorLoop.Command>
    private let thread: LoopThread
    private let nextTarget: Locked<Int>

    /// Starts watching; returns once the sockets are open.
    ///
    /// `sink` is called on the monitor's thread, in order, with every event; it must not block. `recordingFailed` is called there
    /// with an errno when the recording cannot be written to its end (ENOBUFS: the disk was too slow); watching goes on.
    package init(
        _ configuration: MonitorConfiguration, recordingTo path: String? = nil, targets: [(Endpoint, ProbeSettings)] = [],
        recordingFailed: @escaping @Sendable (Int32) -> Void = { _ in },
        sink: @escaping @Sendable (MonitorEvent) -> Void
    ) throws(MonitorError) {
        let ownNamespace = NamespaceWatch.inode(of: "/proc/self/ns/net")
        let namespace = configuration.namespace
        let identity = MonitorIdentity(
            bootID: BootIdentifier.current, namespaceName: namespace?.text,
            namespaceInode: namespace.map { NamespaceWatch.inode(of: $0.path) } ?? ownNamespace
        )
        // Before the thread starts, so that a file that cannot be created leaves nothing behind.
        var recording: RecordingWriter?
        if let path {
            // A namespace that does not exist must not cost an older recording its content.
            if let namespace, identity.namespaceInode == 0 { throw .noSuchNamespace(namespace) }
            let header = RecordingHeader(program: "netwatch", identity: identity, configuration: configuration)
            recording = try RecordingWriter(path: path, header: header)
        }
        let mailbox = Mailbox<MonitorLoop.Command>()
        let polls = SharedFlag()
        for (number, target) in targets.enumerated() { mailbox.post(.add(TargetID(number), target.0, target.1)) }
        do {
            thread = try LoopThread(name: "netwatch", namespace: namespace?.path) { [recording] () throws(LoopError) in
                let loop = try MonitorLoop(
                    configuration, identity: identity, usesSysfs: identity.namespaceInode == ownNamespace, mailbox: mailbox,
                    recording: recording, recordingFailed: recordingFailed, sink: sink
                )
                polls.value.withLock { $0 = loop.isPolling }
                return { loop.run() }
            }
        } catch {
            switch error {
            case .noNamespace: throw namespace.map { .noSuchNamespace($0) } ?? .system(call: "setns", errno: ENOENT)
            case .notPermitted: throw namespace.map { .notPermitted($0) } ?? .system(call: "setns", errno: EPERM)
            case .system(let refused): throw .system(call: refused.call, errno: refused.errno)
            }
        }
        self.identity = identity
        self.mailbox = mailbox
        nextTarget = Locked(targets.count)
        isPolling = polls.value.withLock { $0 }
    }

    deinit {
        mailbox.post(.stop)
    }

    /// Whether the system refuses events, so that everything is looked at from time to time instead.
    package let isPolling: Bool

    /// Makes a target's number, for who has to know it before its first event.
    package func newTarget() -> TargetID {
        nextTarget.withLock { number in
            defer { number += 1 }
            return TargetID(number)
        }
    }

    /// Adds a target; its events follow.
    package func add(_ id: TargetID, _ endpoint: Endpoint, settings: ProbeSettings) { mailbox.post(.add(id, endpoint, settings)) }

    /// Ends a target; events that are under way may still follow.
    package func remove(_ id: TargetID) { mailbox.post(.remove(id)) }

    /// Gives a copy of the kernel's state to `body` on the monitor's thread; `nil` when watching has ended.
    package func withSnapshot(_ body: @escaping @Sendable (Kernel.Snapshot?) -> Void) {
        if !mailbox.post(.snapshot(body)) { body(nil) }
    }

    /// Gives the snapshot with each batch of changes to `body` on the monitor's thread, first with none, until it returns false;
    /// `nil` when watching ends.
    package func follow(_ body: @escaping @Sendable (Kernel.Snapshot?, [Kernel.Change]) -> Bool) {
        if !mailbox.post(.follow(body)) { _ = body(nil, []) }
    }

    /// Gives the path to `body` on the monitor's thread whenever links, addresses, routes or rules have changed, whether the path has or
    /// not, and at first, until it returns false. `body` must not block.
    package func followPath(_ body: @escaping @Sendable (NetworkPath) -> Bool) { mailbox.post(.followPath(body)) }

    /// Gives what is known at the end of the monitor's next turn to `body` on the monitor's thread. What the kernel had sent when
    /// the former call's `body` ran has been read by then. Not called when watching has ended.
    package func withState(_ body: @escaping @Sendable (MonitorState) -> Void) { mailbox.post(.state(body)) }

    /// Stops watching soon; a few events may still follow.
    package func requestStop() { mailbox.post(.stop) }

    /// Stops watching and closes everything; returns when the thread has ended, at once when called on that thread. No event
    /// follows.
    package func stop() {
        mailbox.post(.stop)
        thread.join()
    }
}

// Filled on the monitor's thread before its starter goes on.
private final class SharedFlag: Sendable {
    let value = Locked(false)
}

/// What a monitor knows at one moment, for those who wait until it knows everything.
package struct MonitorState: Sendable {
    /// The kernel's state as far as it is known.
    package var snapshot: Kernel.Snapshot
    /// Whether nothing is being dumped, asked or waited for.
    package var isQuiet: Bool
    /// When the monitor goes on by itself, on the monotonic clock in nanoseconds; `nil` for never.
    package var deadline: Int64?
}
