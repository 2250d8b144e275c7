public import Dispatch
internal import EventLoop
public import FoundationEssentials
internal import Synchronization

/// Watches what this machine can do with the network, from the kernel's own messages: no daemon, no privilege, no polling.
///
/// ```swift
/// let monitor = try PathMonitor()
/// for await update in monitor.updates {              // the first element is the present, isInitial == true
///     print(update.path.status, update.reasons)
/// }
/// ```
/// Watching goes on while the monitor, one of its ``updates`` under iteration, or the token of a callback is kept, and ends with
/// the last of them or with ``cancel()``. A monitor never keeps itself alive.
///
/// Where the system refuses netlink (some sandboxes do), the monitor polls every two seconds and says so: ``isPolling``, and
/// ``NetworkPath/isConsistent`` is false.
public final class PathMonitor: Sendable {
    let core: MonitorCore

    /// Watches the path that the kernel chooses.
    ///
    /// - Parameter namespace: the network namespace to watch; `nil` for the caller's own. Entering another one needs
    ///   CAP_SYS_ADMIN; the calling thread stays where it is.
    /// - Throws: ``MonitorError``, when the namespace cannot be entered or the system refuses descriptors or a thread.
    public convenience init(namespace: NetworkNamespace? = nil) throws(MonitorError) {
        try self.init(MonitorConfiguration(namespace: namespace))
    }

    /// Watches the path over interfaces of one type only, whatever the kernel's first choice is.
    ///
    /// - Parameters:
    ///   - requiredInterfaceType: the type; the path is unsatisfied while no interface of it has a usable default route.
    ///   - namespace: as for ``init(namespace:)``.
    /// - Throws: ``MonitorError``, as ``init(namespace:)``.
    public convenience init(requiredInterfaceType: InterfaceType, namespace: NetworkNamespace? = nil) throws(MonitorError) {
        try self.init(MonitorConfiguration(namespace: namespace, selection: .required(requiredInterfaceType)))
    }

    /// Watches the path over interfaces of all types but some.
    ///
    /// - Parameters:
    ///   - prohibitedInterfaceTypes: the types that do not count.
    ///   - namespace: as for ``init(namespace:)``.
    /// - Throws: ``MonitorError``, as ``init(namespace:)``.
    public convenience init(
        prohibitedInterfaceTypes: Set<InterfaceType>, namespace: NetworkNamespace? = nil
    ) throws(MonitorError) {
        try self.init(MonitorConfiguration(namespace: namespace, selection: .prohibited(prohibitedInterfaceTypes)))
    }

    package convenience init(_ configuration: MonitorConfiguration) throws(MonitorError) {
        self.init(core: try MonitorCore(configuration))
    }

    /// A monitor of another source than the kernel.
    package convenience init(
        makeSource: (_ sink: @escaping @Sendable (MonitorEvent) -> Void) -> any MonitorSource
    ) {
        self.init(core: MonitorCore(makeSource: makeSource))
    }

    private init(core: MonitorCore) {
        self.core = core
        core.announce { [weak self] update in
            guard let self else { return }
            NotificationCenter.default.post(PathDidChange(update: update), subject: self)
        }
    }

    /// The last update; `nil` until the first path is known, a few milliseconds after the start. ``firstPath()`` waits for it.
    public var current: PathUpdate? { core.paths.latest }

    /// The path of ``current``, by the name that `NWPathMonitor` has for it.
    public var currentPath: NetworkPath? { current?.path }

    /// The changes of the path. Any number of tasks may iterate, each from the present on. A task that is slow gets one element
    /// for all that it missed: the latest path, with the reasons of all. The sequence ends with ``cancel()``, and when the watched
    /// namespace is removed.
    public var updates: PathUpdates { PathUpdates(core: core) }

    /// Waits until the first path is known: the kernel's tables have been read and it has been asked for its routes.
    ///
    /// - Returns: the path at that time or later; `nil` when the monitor or the task is cancelled before.
    public func firstPath() async -> NetworkPath? {
        await core.paths.subscribe().next()?.path
    }

    /// Calls `body` with the present path and with each change.
    ///
    /// - Parameters:
    ///   - queue: where `body` is called; without one on a thread that the monitor keeps for callbacks. Never on the thread that
    ///     watches the kernel, and never twice at the same time. Callbacks that are slow get the latest path.
    ///   - body: the callback.
    /// - Returns: a token; the callback ends when it is dropped.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (PathUpdate) -> Void) -> CallbackToken {
        core.paths.deliver(on: queue, through: core.delivery, keeping: core, body)
    }

    /// Calls `body` on the monitor's own thread whenever links, addresses, routes or rules have changed, until it returns false: also for a
    /// route to somewhere, of which the path knows nothing, and for interfaces that are not worth telling. It gets the path as it is then,
    /// which is at least as new as ``currentPath``, and must not block.
    package func followKernel(_ body: @escaping @Sendable (NetworkPath) -> Bool) { core.followPath(body) }

    /// Everything the kernel says of links, addresses, routes and rules, as it is now.
    ///
    /// - Returns: the snapshot; empty when the monitor has been cancelled.
    public func snapshot() async -> Kernel.Snapshot { await core.snapshot() }

    /// The kernel's state and its changes: first a full snapshot, then the differences, in order. Applying them to the snapshot
    /// gives the later one. A task that is slow gets a full snapshot anew.
    public var snapshotUpdates: Kernel.SnapshotUpdates { Kernel.SnapshotUpdates(core: core) }

    /// Whether the system refuses events, so that everything is looked at every two seconds instead.
    public var isPolling: Bool { core.isPolling }

    /// Ends watching: sequences end, callbacks stop. Dropping the monitor, its iterators and its tokens does the same.
    public func cancel() { core.cancel() }

    /// The changes of a monitor's path; each iteration begins with the present.
    public struct PathUpdates: AsyncSequence, Sendable {
        /// One change.
        public typealias Element = PathUpdate
        /// It never fails.
        public typealias Failure = Never

        let core: MonitorCore

        /// A new subscription.
        public func makeAsyncIterator() -> Iterator { Iterator(core: core, subscription: core.paths.subscribe()) }

        /// A subscription.
        public struct Iterator: AsyncIteratorProtocol {
            let core: MonitorCore
            let subscription: Broadcast<PathUpdate>.Subscription

            /// The next change; `nil` at the end, and when the task is cancelled.
            public mutating func next() async -> PathUpdate? { await subscription.next() }

            /// The same, wherever the caller runs.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> PathUpdate? { await subscription.next() }
        }
    }
}

extension PathMonitor {
    /// Posted to `NotificationCenter.default` on every change of the path, and once for the first path, a few milliseconds after the
    /// monitor's start: who begins to observe later hears of the next change, and finds the present in ``PathMonitor/currentPath``.
    /// Foundation delivers messages of this kind asynchronously, and two of them in any order.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: monitor, for: .pathDidChange) { message in … }
    /// ```
    public struct PathDidChange: NotificationCenter.AsyncMessage {
        /// The poster.
        public typealias Subject = PathMonitor
        /// The change.
        public let update: PathUpdate
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<PathMonitor.PathDidChange> {
    /// ``PathMonitor/PathDidChange``.
    public static var pathDidChange: Self { .init() }
}
