internal import ByteComparison

/// The handlers of a durable session's events, by name.
///
/// Handlers are registered before the session opens, because another process may have made the tasks. An event without a registered handler
/// is delivered by ``DurableSession/events``.
///
/// ```swift
/// var handlers = DurableHandlers()
/// handlers.register("photos") { event in
///     print("photo", event.task.url, event.outcome)
///     try? await event.acknowledge()
/// }
/// ```
public struct DurableHandlers: Sendable {
    /// A closure that receives an event. The session calls one handler at a time: a slow handler delays the events behind it.
    public typealias Handler = @Sendable (DurableEvent) async -> Void

    private var handlers: [ExactString: Handler] = [:]
    /// The closure that is called once after the session has opened, when the handlers have returned from every event of earlier processes.
    ///
    /// It is also called if there was no such event. It does not wait for the readers of ``DurableSession/events``. URLSession's counterpart
    /// is `urlSessionDidFinishEvents(forBackgroundURLSession:)`.
    public var didFinishEvents: (@Sendable () async -> Void)?

    /// Creates a value without handlers.
    public init() {}

    /// Registers the handler of the tasks that are made with this name, which must not be empty. It replaces an earlier one.
    public mutating func register(_ name: String, _ handler: @escaping Handler) { handlers[ExactString(name)] = handler }

    /// The names with a handler.
    public var names: Set<String> { Set(handlers.keys.map(\.wrappedValue)) }

    func handler(_ name: String?) -> Handler? { name.flatMap { handlers[ExactString($0)] } }
}
