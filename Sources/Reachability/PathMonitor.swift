public import Dispatch
internal import EventLoop
public import FoundationEssentials
internal import Synchronization

/// Monitors this machine's network connectivity with the kernel's own messages. Needs no daemon and no privilege, and does not
/// poll unless the system refuses netlink.
///
/// ```swift
/// let monitor = try PathMonitor()
/// for await update in monitor.updates {              // the first element is the present, isInitial == true
///     print(update.path.status, update.reasons)
/// }
/// ```
/// The monitor runs while a program retains the monitor, an iterator of ``updates``, or a callback's token. It ends when the last
/// of them is released, or with ``cancel()``. A monitor never keeps itself alive.
///
/// If the system refuses netlink, as some sandboxes do, the monitor polls every two seconds. ``isPolling`` is then true, and
/// ``NetworkPath/isConsistent`` false.
public final class PathMonitor: Sendable {
    let core: MonitorCore

    /// Creates a monitor for the path that the kernel chooses.
    ///
    /// - Parameter namespace: the network namespace to monitor; `nil`, the default, for the caller's own. Entering another
    ///   namespace needs CAP_SYS_ADMIN. The calling thread does not change its namespace.
    /// - Throws: ``MonitorError`` if the namespace cannot be entered, or the system refuses descriptors or a thread.
    public convenience init(namespace: NetworkNamespace? = nil) throws(MonitorError) {
        try self.init(MonitorConfiguration(namespace: namespace))
    }

    /// Creates a monitor for the path over interfaces of one type, regardless of the kernel's first choice.
    ///
    /// - Parameters:
    ///   - requiredInterfaceType: the type. The path is unsatisfied while no interface of this type has a usable default route.
    ///   - namespace: the network namespace, as for ``init(namespace:)``.
    /// - Throws: ``MonitorError``, as ``init(namespace:)``.
    public convenience init(requiredInterfaceType: InterfaceType, namespace: NetworkNamespace? = nil) throws(MonitorError) {
        try self.init(MonitorConfiguration(namespace: namespace, selection: .required(requiredInterfaceType)))
    }

    /// Creates a monitor for the path over interfaces of all types except some.
    ///
    /// - Parameters:
    ///   - prohibitedInterfaceTypes: the excluded types.
    ///   - namespace: the network namespace, as for ``init(namespace:)``.
    /// - Throws: ``MonitorError``, as ``init(namespace:)``.
    public convenience init(
        prohibitedInterfaceTypes: Set<InterfaceType>, namespace: NetworkNamespace? = nil
    ) throws(MonitorError) {
        try self.init(MonitorConfiguration(namespace: namespace, selection: .prohibited(prohibitedInterfaceTypes)))
    }

    package convenience init(_ configuration: MonitorConfiguration) throws(MonitorError) {
        self.init(core: try MonitorCore(configuration))
    }

    /// Creates a monitor with another source than the kernel.
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

    /// The last update; `nil` until the first path is known, a few milliseconds after the start. ``firstPath()`` waits for the
    /// first path.
    public var current: PathUpdate? { core.paths.latest }

    /// The path of ``current``; `nil` until the first path is known. The name is that of `NWPathMonitor.currentPath`.
    public var currentPath: NetworkPath? { current?.path }

    /// The updates of the path, starting with the present one. Any number of tasks may iterate. A slow task receives one element
    /// for all updates that it missed: the latest path, with the reasons of all. The sequence ends with ``cancel()``, and when
    /// the monitored namespace is removed.
    public var updates: PathUpdates { PathUpdates(core: core) }

    /// Waits until the first path is known. The kernel's tables have then been read, and the kernel has answered the first route
    /// queries.
    ///
    /// - Returns: the first path, or a later one if it is already known; `nil` if the monitor or the task is canceled before.
    public func firstPath() async -> NetworkPath? {
        await core.paths.subscribe().next()?.path
    }

    /// Calls `body` with the present update, and with each further update.
    ///
    /// - Parameters:
    ///   - queue: the queue on which `body` runs; `nil`, the default, for a thread that the monitor keeps for callbacks. `body`
    ///     never runs on the thread that monitors the kernel, and never twice at the same time. A slow `body` receives the latest
    ///     path.
    ///   - body: the callback.
    /// - Returns: a token. Releasing the token ends the callback.
    public func onChange(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable (PathUpdate) -> Void) -> CallbackToken {
        core.paths.deliver(on: queue, through: core.delivery, keeping: core, body)
    }

    /// Calls `body` with the present update at once, and with each further update on the thread that publishes it, after the
    /// subscribers of ``onKernelChange(_:)``. `body` must not block, and must not run user code. Releasing the token ends the calls.
    package func onPublish(_ body: @escaping @Sendable (PathUpdate) -> Void) -> CallbackToken { core.onPublish(body) }

    /// Calls `post` with each update, independently of the callbacks, to post notifications. The calls do not keep the monitor
    /// running. Releasing the token ends them.
    package func announceChanges(_ post: @escaping @Sendable (PathUpdate) -> Void) -> CallbackToken { core.announceChanges(post) }

    /// Calls `body` on the monitor's own thread after each change of links, addresses, routes or rules, until `body` returns
    /// false. This includes changes that no update reports, such as a route to one destination, or interfaces whose changes are
    /// not published. `body` receives the present path, which is at least as new as ``currentPath``, and must not block.
    package func onKernelChange(_ body: @escaping @Sendable (NetworkPath) -> Bool) { core.subscribeToPath(body) }

    /// Returns the kernel's present links, addresses, routes and rules; an empty snapshot if the monitor is canceled.
    package func snapshot() async -> KernelSnapshot { await core.snapshot() }

    /// Whether the system refuses netlink, so that the monitor polls the kernel's tables every two seconds.
    public var isPolling: Bool { core.isPolling }

    /// Ends the monitor: sequences end, and callbacks stop. Releasing the monitor, its iterators and its tokens has the same
    /// effect.
    public func cancel() { core.cancel() }

    /// The updates of a monitor's path. Each iteration begins with the present update.
    public struct PathUpdates: AsyncSequence, Sendable {
        /// An update of the path.
        public typealias Element = PathUpdate
        /// The sequence never fails.
        public typealias Failure = Never

        let core: MonitorCore

        /// Creates a subscription, which begins with the present update.
        public func makeAsyncIterator() -> Iterator { Iterator(core: core, subscription: core.paths.subscribe()) }

        /// A subscription to the updates.
        public struct Iterator: AsyncIteratorProtocol {
            let core: MonitorCore
            let subscription: Broadcast<PathUpdate>.Subscription

            /// Waits for the next update; `nil` at the end, and if the task is canceled.
            public mutating func next() async -> PathUpdate? { await subscription.next() }

            /// Waits for the next update, in the caller's isolation; `nil` at the end, and if the task is canceled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> PathUpdate? { await subscription.next() }
        }
    }
}

extension PathMonitor {
    /// The message that is posted to `NotificationCenter.default` for every update of the path.
    ///
    /// The first message follows a few milliseconds after the monitor's start. An observer that is added later receives the next
    /// update; ``PathMonitor/currentPath`` is the present path. Foundation delivers messages of this kind asynchronously, and may
    /// change their order.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: monitor, for: .pathDidChange) { message in … }
    /// ```
    public struct PathDidChange: NotificationCenter.AsyncMessage {
        /// The type of the object that posts the message.
        public typealias Subject = PathMonitor
        /// The update.
        public let update: PathUpdate
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<PathMonitor.PathDidChange> {
    /// The identifier of ``PathMonitor/PathDidChange``.
    public static var pathDidChange: Self { .prepared }
}

/// A monitor is a sequence of its paths, as `NWPathMonitor` is: `for await path in monitor`. ``PathMonitor/updates`` has the reasons as well.
extension PathMonitor: AsyncSequence {
    /// A path.
    public typealias Element = NetworkPath
    /// The sequence never fails.
    public typealias Failure = Never

    /// Creates a subscription, which begins with the present path.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(updates: updates.makeAsyncIterator()) }

    /// An iterator of the paths of a monitor.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var updates: PathUpdates.Iterator

        /// The next path; `nil` when the monitor has ended, or the waiting Swift task is canceled.
        public mutating func next() async -> NetworkPath? { await updates.next()?.path }

        /// The next path, delivered on the given actor; `nil` when the monitor has ended, or the waiting Swift task is canceled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkPath? {
            await updates.next(isolation: actor)?.path
        }
    }
}
