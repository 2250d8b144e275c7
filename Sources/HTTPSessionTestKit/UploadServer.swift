public import struct FoundationEssentials.URL

/// A server for uploads that go on where they stopped, which does what its protocol says but for the faults that its test wants.
///
/// ```swift
/// let server = try UploadServer(.tus) { turn in turn.request.method == "PATCH" ? .cut(afterBodyBytes: 5_000) : nil }
/// // … an upload to server.url …
/// #expect(server.uploads.map(\.bytes) == [expected])
/// ```
///
/// What came of a body before a cut is kept. A request for an upload ends an earlier one that is still sending to it.
public final class UploadServer: Sendable {
    /// What it speaks.
    public enum Dialect: Hashable, Sendable {
        /// tus 1.0.0 with the extension creation.
        case tus
        /// draft-ietf-httpbis-resumable-upload, interoperability version 8.
        case draft
    }

    /// What a server can be told besides its faults.
    public struct Options: Sendable {
        /// Where it listens; a free port of 127.0.0.1 unless told.
        public var address = ListeningAddress.loopback
        /// The file of the network namespace to listen in; nil for that of the caller. The closures that answer then run inside it, and
        /// must not give queues or tasks something to do: dispatch would make its threads there.
        public var namespace: String?
        /// The value of `Upload-Limit`, in the draft's dialect.
        public var limit: String?
        /// Whether the draft's 104 is sent, and which version it names.
        public var interopVersion: Int? = 8
        /// What stands before `/uploads/1` in `Location`, such as `http://127.0.0.1:PORT`.
        public var locationPrefix = ""
        /// A directory that is there, for the uploads: a later server that is given it goes on with them. Nil: they are in memory, and end
        /// with their server.
        public var directory: String?
        /// How fast bodies are read; nil for as fast as they come.
        public var bytesPerSecond: Int?

        /// A server that behaves.
        public init() {}
    }

    /// A request whose head has been read.
    public struct Turn: Sendable {
        /// Its place among all of the server's, from 1.
        public let number: Int
        /// Without its body.
        public let request: ReceivedRequest
        /// How much is there of the upload that it is for; nil where there is none.
        public let stored: Int64?
    }

    /// What goes wrong with a request.
    public enum Fault: Sendable {
        /// So many bytes of the body are read, and the connection ends, after a wait; of those the last `losing` are not kept. A reset may
        /// destroy what the client has not read yet, such as a 104.
        case cut(afterBodyBytes: Int64, losing: Int64 = 0, StubResponse.Ending = .reset, after: StubResponse.Wait? = nil)
        /// So many bytes of the body are read, and the rest after a wait.
        case hold(afterBodyBytes: Int64, StubResponse.Wait)
        /// All of it is taken, and the connection ends without an answer.
        case silence(StubResponse.Ending = .reset)
        /// This is the answer; the body is not read, and the connection ends.
        case refuse(StubResponse)
        /// All of it is taken, and this is the answer.
        case answer(StubResponse)
        /// The upload is forgotten before the request is looked at.
        case forget
        /// The answer says that so many bytes are there.
        case claim(Int64)
    }

    /// What is there of an upload.
    public struct Upload: Hashable, Sendable {
        /// The length that its creation told; nil: none.
        public let length: Int64?
        var contents = Contents.memory([])
        /// Whether the client has said that this is all.
        public internal(set) var isComplete = false
        /// `Upload-Metadata` and the like: the fields of the request that made it.
        public let fields: [HeaderField]
        /// Counts the requests for it: an older one that still sends is not listened to.
        var writer = 0

        /// What has been received, in its place.
        public var bytes: [UInt8] { contents.bytes }
        /// How many bytes that is.
        public var count: Int64 { contents.count }
    }

    /// What a server has seen so far.
    struct Seen: Sendable {
        var requests: [ReceivedRequest] = []
        var uploads: [Int: Upload] = [:]
        var created = 0
        var connections = 0
        var bodyBytes: Int64 = 0
    }

    /// The port.
    public let port: UInt16
    private let listener: Listener
    private let log: ServerLog<Seen>
    private let host: String

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - dialect: what it speaks.
    ///   - options: what else there is to tell.
    ///   - fault: asked for each request when its head has been read, on the connection's thread; nil: it is done as it should be.
    /// - Throws: ``TestServerError``.
    public init(_ dialect: Dialect, options: Options = Options(), fault: @escaping @Sendable (Turn) -> Fault? = { _ in nil })
        throws
    {
        let shelf = options.directory.map { UploadShelf($0) }
        var seen = Seen()
        seen.uploads = try shelf?.load() ?? [:]
        seen.created = seen.uploads.keys.max() ?? 0
        let log = ServerLog(seen)
        listener = try Listener(
            at: options.address, namespace: options.namespace, maximumConnections: 256, receiveBuffer: nil
        ) { socket, stop in
            let number = log.change { seen in
                seen.connections += 1
                return seen.connections
            }
            UploadConversation(
                number: number, channel: Channel(socket, stop: stop), dialect: dialect, options: options, fault: fault,
                shelf: shelf, log: log
            ).run()
        }
        self.log = log
        port = listener.port
        if case .ip(let host, _) = options.address { self.host = host } else { host = "localhost" }
    }

    /// Ends all connections and threads, and waits for that.
    public func stop() { listener.end() }

    /// The address that makes uploads; an address without a URL is the test's mistake, and traps.
    public var url: URL {
        guard let url = URL(string: "http://\(host):\(port)/uploads") else { preconditionFailure("no URL: \(host)") }
        return url
    }

    /// The requests whose heads were read, oldest first; `bodyLength` says how much of the body was.
    public var requests: [ReceivedRequest] { log.state.requests }
    /// The uploads that are there, in the order in which they were made.
    public var uploads: [Upload] { log.state.uploads.sorted { $0.key < $1.key }.map(\.value) }
    /// Bytes of bodies that were read, of all requests.
    public var bodyBytes: Int64 { log.state.bodyBytes }

    /// Waits until so many bytes of bodies have been read.
    ///
    /// - Throws: ``TestServerError`` when that did not happen in time.
    public func awaitBodyBytes(_ count: Int64, within limit: Duration = .seconds(30)) async throws {
        _ = try await log.wait(for: "\(count) bytes", within: limit) { $0.bodyBytes >= count }
    }
}
