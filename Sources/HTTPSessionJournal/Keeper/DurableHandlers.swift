/// Who hears of the ends of tasks: registered by name before the session starts, because another process has made the tasks.
///
/// ```swift
/// var handlers = DurableHandlers()
/// handlers.register("photos") { event in
///     print(event.task.url, event.outcome)
///     try? await event.acknowledge()
/// }
/// ```
public struct DurableHandlers: Sendable {
    /// Takes an event. One is called at a time; what is slow here delays the events behind it.
    public typealias Handler = @Sendable (DurableEvent) async -> Void

    private(set) var handlers: [String: Handler] = [:]
    /// Called once after a start, when the handlers have returned from every event of earlier processes; also where there was none. As
    /// `urlSessionDidFinishEvents(forBackgroundURLSession:)` on Apple's systems.
    public var didFinishEvents: (@Sendable () async -> Void)?

    /// Nobody.
    public init() {}

    /// Has the events of tasks that were made for `name` go to `handler`, in the place of an earlier one.
    public mutating func register(_ name: String, _ handler: @escaping Handler) { handlers[name] = handler }

    /// The names with a handler.
    public var names: Set<String> { Set(handlers.keys) }
}
