public import Foundation
public import HTTPSession
public import Reachability

/// A session whose downloads and uploads outlive its process, as those of URLSession's background sessions do on Apple's systems.
///
/// ```swift
/// var handlers = DurableHandlers()
/// handlers.register("photos") { event in
///     print(event.task.url, event.outcome)
///     try? await event.acknowledge()
/// }
/// let session = try DurableSession(identifier: "org.example.photos", directory: state, handlers: handlers)
/// try await session.download(TransferRequest(url: photo), to: DownloadDestination(file), handler: "photos")
/// ```
///
/// A task is on the disk when the method that makes it returns. It goes on whenever a process opens the same identifier, and ends once:
/// with an event, which its handler hears at every start until it is acknowledged (``DurableEvent/acknowledge()``). Neither SIGKILL nor
/// a power loss, whenever it comes, loses a task or an event or gives an event another identifier.
///
/// ### Downloads
/// The bytes lie beside the destination under hidden names (`.NAME.ID…`), with the sidecar that says which of them are valid; the journal
/// does not. When the file is whole, the journal hears of it, the file gets its name, and the journal hears of that with the event.
///
/// ### Uploads
/// One that its server's protocol lets go on (`resumably:`) goes on in another process where its server is; the journal has its place. One
/// without is sent anew by the next process where a second execution does no harm (PUT, `Idempotency-Key`), or where nothing of it had been
/// sent yet; another one is not sent again, and ends as ``DurableEvent/Outcome/interrupted``. A file that has changed since the task was
/// made ends it.
///
/// ### Secrets
/// Addresses, fields and small bodies are written to the journal, which only its owner can read. A request with `Authorization`,
/// `Proxy-Authorization`, `Cookie` or a user in its address is refused, unless the caller asks for it to be written (`writesSecrets`):
/// the session's `RequestInterceptor`s add such fields anew in every process.
///
/// ### When something is wrong with the journal
/// A second session of one identifier is refused (``DurableSessionError/Code/inUse``), and so is a journal of a later version. A damaged
/// one gets another name, ``setAside``, and a fresh one takes its place. When the disk takes nothing, what is to be written is tried again
/// every ten seconds. The directory belongs on a file system of this machine.
public final class DurableSession: Sendable {
    /// As given.
    public let identifier: String
    let keeper: Keeper

    /// Opens the journal, or makes it, and lets its tasks go on. It reads and writes files meanwhile.
    ///
    /// - Parameters:
    ///   - identifier: 1 to 100 letters, digits, `.`, `-` and `_` of ASCII, not a dot first; the name of the session's own directory.
    ///   - directory: where that directory is; made where it is missing, readable by its owner only.
    ///   - configuration: of the session that transfers. Its retry policy does not hold: a task that has none of its own tries as long
    ///     as it may (`RetryPolicy.persistent`).
    ///   - limits: how much the journal takes.
    ///   - handlers: hear of the ends of tasks, also those of earlier processes: registered before.
    ///   - transferHandlers: asked about every task, as of any session; the interceptors are among them.
    ///   - credentials: for challenges.
    ///   - reachability: as for any session; with it, tasks wait for a network.
    ///   - monitors: hear every event of the session that transfers.
    /// - Throws: ``DurableSessionError``
    public convenience init(
        identifier: String, directory: URL, configuration: SessionConfiguration = .default,
        limits: DurableLimits = DurableLimits(), handlers: DurableHandlers,
        transferHandlers: TransferHandlers = TransferHandlers(),
        credentials: CredentialStore = CredentialStore(), reachability: PathMonitor? = nil, monitors: [any EventMonitor] = []
    ) throws(DurableSessionError) {
        try self.init(
            identifier: identifier, directory: directory, configuration: configuration, limits: limits, handlers: handlers,
            transferHandlers: transferHandlers, credentials: credentials, reachability: reachability, monitors: monitors,
            surroundings: Keeper.Surroundings())
    }

    init(
        identifier: String, directory: URL, configuration: SessionConfiguration, limits: DurableLimits = DurableLimits(),
        handlers: DurableHandlers, transferHandlers: TransferHandlers = TransferHandlers(),
        credentials: CredentialStore = CredentialStore(), reachability: PathMonitor? = nil, monitors: [any EventMonitor] = [],
        surroundings: Keeper.Surroundings
    ) throws(DurableSessionError) {
        guard DurableSession.isSound(identifier) else {
            throw DurableSessionError(
                .invalidIdentifier, "an identifier has 1 to 100 letters, digits, '.', '-' and '_', and no dot first")
        }
        self.identifier = identifier
        keeper = try Keeper(
            identifier: identifier, directory: directory, limits: limits, handlers: handlers, logger: configuration.logger,
            surroundings: surroundings
        ) { (monitor) throws(DurableSessionError) in
            do throws(HTTPSessionError) {
                return try HTTPSessionManager(
                    configuration: configuration, handlers: transferHandlers, credentials: credentials,
                    reachability: reachability, monitors: monitors + [monitor])
            } catch {
                throw DurableSessionError(.invalidConfiguration, error.reason, underlying: error)
            }
        }
    }

    private static func isSound(_ identifier: String) -> Bool {
        (1...100).contains(identifier.utf8.count) && identifier.first != "."
            && identifier.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || [0x2D, 0x2E, 0x5F].contains(byte)
            }
    }

    // As `close()`, and nobody waits for it.
    deinit { keeper.close {} }

    /// Where a damaged journal has been put that was found at this start; its tasks are not known any more. `nil`: it was sound.
    public var setAside: URL? { keeper.setAside.map { URL(fileURLWithPath: $0) } }

    /// What tasks found at this start have for a handler, and nobody has registered. They go on; their events wait for a start with such a
    /// handler.
    public var unknownHandlers: Set<String> { keeper.unknownHandlers }

    /// Downloads to a file, in this process and the next ones.
    ///
    /// - Parameters:
    ///   - request: its body is none or data. Its resource timeout is the task's, over all processes.
    ///   - destination: `DownloadDestination.partialFile` has no say: what is not whole is kept.
    ///   - handler: the name of a registered handler.
    ///   - context: the application's own, given back with the event.
    ///   - writesSecrets: fields and addresses that hold secrets may be written to the disk.
    /// - Returns: the task, which is on the disk.
    /// - Throws: ``DurableSessionError``: then nothing has been written.
    @discardableResult
    public func download(
        _ request: TransferRequest, to destination: DownloadDestination, handler: String, context: Data = Data(),
        writesSecrets: Bool = false
    ) async throws(DurableSessionError) -> DurableTask {
        try await keeper.add(
            request, to: destination, resumably: nil, handler: handler, context: context, writesSecrets: writesSecrets)
    }

    /// Uploads a request's body, in this process and the next ones. A status outside of 200 to 299 is a failure.
    ///
    /// - Parameters:
    ///   - request: its body is a file, which has to stay as it is, or data. Its resource timeout is the task's, over all processes.
    ///   - uploadProtocol: how it goes on where it stopped; `nil`: it does not.
    ///   - handler: the name of a registered handler.
    ///   - context: the application's own, given back with the event.
    ///   - writesSecrets: fields and addresses that hold secrets may be written to the disk.
    /// - Returns: the task, which is on the disk.
    /// - Throws: ``DurableSessionError``: then nothing has been written.
    @discardableResult
    public func upload(
        _ request: TransferRequest, resumably uploadProtocol: UploadProtocol? = nil, handler: String, context: Data = Data(),
        writesSecrets: Bool = false
    ) async throws(DurableSessionError) -> DurableTask {
        try await keeper.add(
            request, to: nil, resumably: uploadProtocol, handler: handler, context: context, writesSecrets: writesSecrets)
    }

    /// All tasks whose events have not been acknowledged, the oldest first.
    public var tasks: [DurableTask] { get async throws(DurableSessionError) { try await keeper.tasks() } }

    /// The events that wait for acknowledgement, also those that no handler is there for.
    public var events: [DurableEvent] { get async throws(DurableSessionError) { try await keeper.events() } }

    /// Ends a task for good, also if the process is killed right after. Its event is ``DurableEvent/Outcome/cancelled``, unless it has ended
    /// otherwise meanwhile.
    public func cancel(_ id: DurableTask.ID) async throws(DurableSessionError) { try await keeper.cancel(id) }

    /// Says that a task's event has done its work (``DurableEvent/acknowledge()``).
    public func acknowledge(_ id: DurableEvent.ID) async throws(DurableSessionError) { try await keeper.acknowledge(id) }

    /// Ends the transfers and lets go of the journal; the tasks go on when the identifier is opened again. Events that come meanwhile are
    /// delivered then. Whatever is asked of the session afterwards is refused (``DurableSessionError/Code/closed``).
    public func close() async {
        await withCheckedContinuation { continuation in keeper.close { continuation.resume() } }
    }
}
