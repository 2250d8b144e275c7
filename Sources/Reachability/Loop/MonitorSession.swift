internal import EventLoop
internal import Glibc

/// A running monitor: one thread that monitors one namespace. All public types use this class.
package final class MonitorSession: MonitorSource {
    package let identity: MonitorIdentity
    private let mailbox: Mailbox<MonitorLoop.Command>
    private let thread: LoopThread
    private let nextTarget: Locked<Int>

    /// Starts the monitor, and returns once the sockets are open.
    ///
    /// `sink` receives every event, in order, on the monitor's thread. It must not block. `recordingFailed` receives an errno on
    /// the same thread if the recording cannot be written completely (ENOBUFS: the disk was too slow). The monitor continues.
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
        // The recording is created before the thread starts, so that a file that cannot be created leaves nothing behind.
        var recording: RecordingWriter?
        if let path {
            // A missing namespace must not overwrite an older recording.
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

    /// Whether the system refuses events, so that the tables are polled.
    package let isPolling: Bool

    /// Returns a new target's number, for a caller that needs it before the first event.
    package func newTarget() -> TargetID {
        nextTarget.withLock { number in
            defer { number += 1 }
            return TargetID(number)
        }
    }

    /// Adds a target; its events follow.
    package func add(_ id: TargetID, _ endpoint: Endpoint, settings: ProbeSettings) { mailbox.post(.add(id, endpoint, settings)) }

    /// Removes a target. Its pending events may still follow.
    package func remove(_ id: TargetID) { mailbox.post(.remove(id)) }

    /// Removes a target, and adds another one in its place: the same server with other settings, whose open incident continues.
    package func replace(_ id: TargetID, by other: TargetID, _ endpoint: Endpoint, settings: ProbeSettings) {
        mailbox.post(.replace(id, by: other, endpoint, settings))
    }

    /// Passes the outcome of a connection that another part of the program made to the targets with its endpoint.
    package func report(_ report: PassiveReport) { mailbox.post(.report(report)) }

    /// Passes the report of a job to its target.
    package func report(_ report: HeartbeatReport, of id: TargetID) { mailbox.post(.heartbeat(id, report)) }

    /// Passes what is known of jobs since the last call to `body` on the monitor's thread. It is not called if the monitor has ended.
    package func withHeartbeats(_ body: @escaping @Sendable ([HeartbeatMemories.Job: HeartbeatMemory]) -> Void) {
        mailbox.post(.heartbeats(body))
    }

    /// Passes a copy of the kernel's state to `body` on the monitor's thread; `nil` if the monitor has ended.
    package func withSnapshot(_ body: @escaping @Sendable (KernelSnapshot?) -> Void) {
        if !mailbox.post(.snapshot(body)) { body(nil) }
    }

    /// Asks the kernel for a route and for the neighbor to which it leads, and passes the answer to `body` on the monitor's thread;
    /// `nil` if the monitor has ended. Recordings do not have the answer, because no decision of the monitor depends on it.
    package func inspect(_ query: RouteQuery, _ body: @escaping @Sendable (RouteInspection?) -> Void) {
        if !mailbox.post(.inspect(query, body)) { body(nil) }
    }

    /// Passes the path to `body` on the monitor's thread: at first, and after each change of links, addresses, routes or rules.
    /// It does so even if the path is unchanged. Ends when `body` returns false. `body` must not block.
    package func subscribeToPath(_ body: @escaping @Sendable (NetworkPath) -> Bool) { mailbox.post(.subscribeToPath(body)) }

    /// Passes the state at the end of the monitor's next turn to `body` on the monitor's thread. The state includes all messages
    /// that the kernel had sent when the previous call's `body` ran. `body` is not called if the monitor has ended.
    package func withState(_ body: @escaping @Sendable (MonitorState) -> Void) { mailbox.post(.state(body)) }

    /// Requests the end of the monitor. A few events may still follow.
    package func requestStop() { mailbox.post(.stop) }

    /// Ends the monitor and closes all descriptors. Returns when the thread has ended, or at once if called on that thread. No
    /// event follows.
    package func stop() {
        mailbox.post(.stop)
        thread.join()
    }
}

// Set on the monitor's thread before the thread that started it continues.
private final class SharedFlag: Sendable {
    let value = Locked(false)
}

/// The state of a monitor at one moment, for callers that wait until the monitor is idle.
package struct MonitorState: Sendable {
    /// The known state of the kernel's tables.
    package var snapshot: KernelSnapshot
    /// Whether no dump, query or answer is pending.
    package var isIdle: Bool
    /// The time at which the monitor continues without input, on the monotonic clock in nanoseconds; `nil` for never.
    package var deadline: Int64?
}
