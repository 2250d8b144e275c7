public import Foundation
public import HTTPSession
public import Reachability

/// A session whose downloads and uploads outlive its process, as the tasks of URLSession's background sessions do on Apple's systems.
///
/// ```swift
/// let session = try await DurableSession.open(identifier: "org.example.models", directory: state)
/// let destination = DownloadDestination(file, existingFile: .replace)
/// let task = try await session.downloadTask(for: TransferRequest(url: url), to: destination)
///
/// for await event in session.events {
///     print(event.task.url, event.outcome)
///     try await event.acknowledge()
/// }
/// ```
///
/// A task is on the disk when the method that makes it returns. It continues in every process that opens the same identifier, until it
/// ends once, with one event. ``events`` or a registered handler receives that event after every start, until
/// ``DurableEvent/acknowledge()`` returns. SIGKILL or a power loss at any moment loses no task and no event.
///
/// The article <doc:HTTPSessionJournal> describes delivery, secrets, and the errors of a journal.
public final class DurableSession: Sendable {
    /// The name that the session was opened with.
    public let identifier: String
    let coordinator: TaskCoordinator

    /// Opens the journal of an identifier, or creates it, and continues its tasks.
    ///
    /// The session's own thread reads and writes the files, so the caller's executor is not blocked. Opening waits for the disk: it checks
    /// the database and reads every task.
    ///
    /// If the calling task is canceled before the tasks continue, this method releases the journal and throws
    /// ``DurableSessionError/Code/cancelled``. A later cancellation does not undo the opening.
    ///
    /// - Parameters:
    ///   - identifier: the name of the session's own directory: 1 to 100 ASCII letters, digits, `.`, `-` and `_`, without a dot first.
    ///   - directory: the parent of that directory. Missing directories are created, readable by their owner only. It must be on a file
    ///     system of this machine.
    ///   - configuration: the configuration of the session that transfers. Its retry policy does not apply: a task without a policy of
    ///     its own is retried until it expires (`RetryPolicy.persistent`). If it has a scripted transport (`scriptedTransport` of
    ///     HTTPSessionTestKit), the session opens no socket, and the dates of its tasks are those of the transport.
    ///   - limits: the limits of the journal.
    ///   - handlers: the handlers of events, by name. Without any, ``events`` delivers every event.
    ///   - transferHandlers: the handlers and interceptors of every transfer.
    ///   - credentials: the credentials that answer authentication challenges.
    ///   - monitor: the monitor that lets tasks wait for a network.
    ///   - eventMonitors: the monitors that receive every event of the session that transfers.
    /// - Returns: the session. It closes when ``close()`` is called, or when its last reference is released.
    /// - Throws: ``DurableSessionError``.
    public static func open(
        identifier: String, directory: URL, configuration: SessionConfiguration = .default,
        limits: DurableLimits = DurableLimits(), handlers: DurableHandlers = DurableHandlers(),
        transferHandlers: TransferHandlers = TransferHandlers(),
        credentials: CredentialStore = CredentialStore(), monitor: PathMonitor? = nil, eventMonitors: [any EventMonitor] = []
    ) async throws(DurableSessionError) -> DurableSession {
        var environment = TaskCoordinator.Environment()
        if let transport = configuration.transport {
            environment.clock = { Int64(transport.date().timeIntervalSince1970) }
        }
        return try await open(
            identifier: identifier, directory: directory, configuration: configuration, limits: limits, handlers: handlers,
            transferHandlers: transferHandlers, credentials: credentials, monitor: monitor, eventMonitors: eventMonitors,
            environment: environment)
    }

    static func open(
        identifier: String, directory: URL, configuration: SessionConfiguration, limits: DurableLimits = DurableLimits(),
        handlers: DurableHandlers = DurableHandlers(), transferHandlers: TransferHandlers = TransferHandlers(),
        credentials: CredentialStore = CredentialStore(), monitor: PathMonitor? = nil, eventMonitors: [any EventMonitor] = [],
        environment: TaskCoordinator.Environment
    ) async throws(DurableSessionError) -> DurableSession {
        guard DurableSession.isValid(identifier) else {
            throw DurableSessionError(
                .invalidIdentifier, "an identifier has 1 to 100 letters, digits, '.', '-' and '_', and no dot first")
        }
        guard directory.isFileURL else {
            throw DurableSessionError(.invalidConfiguration, "the directory is not a file URL")
        }
        let coordinator = try await TaskCoordinator.open(
            identifier: identifier, directory: directory, limits: limits, handlers: handlers, logger: configuration.logger,
            environment: environment
        ) { (coordinatorMonitor) throws(DurableSessionError) in
            do throws(HTTPSessionError) {
                return try HTTPSessionManager(
                    configuration: configuration, handlers: transferHandlers, credentials: credentials,
                    monitor: monitor, eventMonitors: eventMonitors + [coordinatorMonitor])
            } catch {
                throw DurableSessionError(.invalidConfiguration, error.reason, underlying: error)
            }
        }
        return DurableSession(identifier, coordinator)
    }

    private init(_ identifier: String, _ coordinator: TaskCoordinator) {
        (self.identifier, self.coordinator) = (identifier, coordinator)
    }

    private static func isValid(_ identifier: String) -> Bool {
        (1...100).contains(identifier.utf8.count) && identifier.first != "."
            && identifier.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || [0x2D, 0x2E, 0x5F].contains(byte)
            }
    }

    // Closes without waiting for the end, which `close()` awaits.
    deinit { coordinator.close {} }

    /// The new path of a damaged journal that this opening has found and replaced, and whose tasks are lost; `nil` if the journal was not
    /// damaged.
    public var damagedJournal: URL? { coordinator.damagedJournal.map { URL(fileURLWithPath: $0) } }

    /// The handler names of tasks in the opened journal for which no handler is registered.
    ///
    /// These tasks continue. ``events`` delivers their events.
    public var unknownHandlers: Set<String> { coordinator.unknownHandlers }

    /// Adds a download to a file, which this process or a later one completes.
    ///
    /// - Parameters:
    ///   - request: the request, without a body or with a body of data. Its resource timeout limits the task across all processes.
    ///   - destination: the file, which appears when it is complete. The task always keeps its partial file, even if the destination does
    ///     not request that.
    ///   - handler: the name of the registered handler that receives the event; `nil` for ``DurableSession/events``.
    ///   - context: bytes of the application, which the event returns; at most ``DurableLimits/contextBytes``.
    ///   - writesSecrets: whether header fields and URLs that contain secrets may be written to the disk.
    /// - Returns: the task as it has been written to the disk.
    /// - Throws: ``DurableSessionError``; nothing has been written then.
    @discardableResult
    public func downloadTask(
        for request: TransferRequest, to destination: DownloadDestination, handler: String? = nil, context: Data = Data(),
        writesSecrets: Bool = false
    ) async throws(DurableSessionError) -> DurableTaskInfo {
        try await coordinator.add(
            request, to: destination, uploadProtocol: nil, handler: handler, context: context, writesSecrets: writesSecrets)
    }

    /// Adds an upload, which this process or a later one completes. A status code outside of 200 to 299 is a failure.
    ///
    /// - Parameters:
    ///   - request: the request. Its resource timeout limits the task across all processes.
    ///   - body: the body, which replaces that of the request: a file, which must not change until the task ends, or data.
    ///   - uploadProtocol: the protocol that continues the upload after an interruption; `nil` to restart it, or to end it as
    ///     ``DurableEvent/Outcome/interrupted`` if a second execution can do harm.
    ///   - handler: the name of the registered handler that receives the event; `nil` for ``DurableSession/events``.
    ///   - context: bytes of the application, which the event returns; at most ``DurableLimits/contextBytes``.
    ///   - writesSecrets: whether header fields and URLs that contain secrets may be written to the disk.
    /// - Returns: the task as it has been written to the disk.
    /// - Throws: ``DurableSessionError``; nothing has been written then.
    @discardableResult
    public func uploadTask(
        for request: TransferRequest, from body: RequestBody, resumableUsing uploadProtocol: UploadProtocol? = nil,
        handler: String? = nil, context: Data = Data(), writesSecrets: Bool = false
    ) async throws(DurableSessionError) -> DurableTaskInfo {
        var request = request
        request.body = body
        return try await coordinator.add(
            request, to: nil, uploadProtocol: uploadProtocol, handler: handler, context: context, writesSecrets: writesSecrets)
    }

    /// The tasks whose events have not been acknowledged, the oldest first.
    public var tasks: [DurableTaskInfo] { get async throws(DurableSessionError) { try await coordinator.tasks() } }

    /// The events that have not been acknowledged, whether or not they have been delivered, in no particular order.
    public var pendingEvents: [DurableEvent] {
        get async throws(DurableSessionError) { try await coordinator.pendingEvents() }
    }

    /// Ends a task permanently, even if the process is killed immediately afterwards.
    ///
    /// Its event is ``DurableEvent/Outcome/cancelled``, unless the task has ended before.
    ///
    /// - Throws: ``DurableSessionError/Code/unknownTask`` if no such task exists; ``DurableSessionError/Code/journalFailed`` if the disk
    ///   refuses the write.
    public func cancel(_ id: DurableTaskInfo.ID) async throws(DurableSessionError) { try await coordinator.cancel(id) }

    /// Acknowledges the event of a task, as ``DurableEvent/acknowledge()`` does.
    public func acknowledge(_ id: DurableEvent.ID) async throws(DurableSessionError) { try await coordinator.acknowledge(id) }

    /// Stops the transfers, ends the iterations over ``events``, and releases the journal.
    ///
    /// The tasks continue when the identifier is opened again; events that have not been acknowledged are delivered then. Every later call
    /// throws ``DurableSessionError/Code/closed``. The session has then released its handlers.
    public func close() async {
        await withCheckedContinuation { continuation in coordinator.close { continuation.resume() } }
    }
}
