package import HTTPSessionTestKit
package import Reachability

package import struct FoundationEssentials.URL

/// A server for resumable uploads, which follows its protocol except for the faults that the test chooses.
///
/// ```swift
/// let server = try UploadServer(.tus) { turn in turn.request.method == "PATCH" ? .cut(afterBodyBytes: 5_000) : nil }
/// // … an upload to server.url …
/// #expect(server.uploads.map(\.bytes) == [expected])
/// ```
///
/// The bytes of a body before a cut are kept. A request for an upload ends an earlier one that is still sending to it.
package final class UploadServer: Sendable {
    /// The protocol of an upload server.
    package enum Dialect: Hashable, Sendable {
        /// tus 1.0.0 with the extension `creation`.
        case tus
        /// draft-ietf-httpbis-resumable-upload, interoperability version 8.
        case draft
    }

    /// The configuration of a server besides its faults.
    package struct Configuration: Sendable {
        /// The address to listen at; by default a free port of 127.0.0.1.
        package var address = ListeningAddress.loopback
        /// The network namespace to listen in; `nil` for the namespace of the caller. The closures that answer then run inside the
        /// namespace, and must not start work on queues or tasks: Dispatch would create its threads there.
        package var namespace: NetworkNamespace?
        /// The value of `Upload-Limit`, for the draft's protocol.
        package var limit: String?
        /// The interoperability version that the draft's 104 responses name; `nil` to send none.
        package var interopVersion: Int? = 8
        /// The text before `/uploads/1` in `Location`, such as `http://127.0.0.1:PORT`.
        package var locationPrefix = ""
        /// An existing directory for the uploads: a later server with the same directory continues them. If it is `nil`, uploads are in memory and
        /// end with their server.
        package var directory: String?
        /// The rate at which bodies are read, in bytes per second; `nil` for no limit.
        package var bytesPerSecond: Int?

        /// Creates the configuration of a server without faults.
        package init() {}
    }

    /// A request whose head has been read.
    package struct Turn: Sendable {
        /// The number of the request among the server's, counted from 1.
        package let number: Int
        /// The request, without its body.
        package let request: ReceivedRequest
        /// The number of bytes that the server has of the upload; `nil` if there is no such upload.
        package let stored: Int64?
    }

    /// A fault in the handling of a request.
    package enum Fault: Sendable {
        /// After this number of bytes of the body and a wait, the connection ends; the last `losing` of the bytes are not kept. A reset may
        /// destroy what the client has not read yet, such as a 104.
        case cut(afterBodyBytes: Int64, losing: Int64 = 0, StubResponse.Ending = .reset, after: StubResponse.Wait? = nil)
        /// After this number of bytes of the body, the server waits before it reads the remaining ones.
        case hold(afterBodyBytes: Int64, StubResponse.Wait)
        /// The server reads and keeps the complete body, and the connection ends without a response.
        case silence(StubResponse.Ending = .reset)
        /// The server sends this response without reading the body, and the connection ends.
        case refuse(StubResponse)
        /// The server reads and keeps the complete body, and sends this response.
        case answer(StubResponse)
        /// The server forgets the upload before it handles the request.
        case forget
        /// The response says that the server has this number of bytes.
        case claim(Int64)
    }

    /// The state of an upload.
    package struct Upload: Hashable, Sendable {
        /// The length that the creating request declared; `nil` for none.
        package let length: Int64?
        var contents = Contents.memory([])
        /// Whether the client has declared the upload complete.
        package internal(set) var isComplete = false
        /// The fields of the request that created the upload, such as `Upload-Metadata`.
        package let fields: [HeaderField]
        /// The number of requests for the upload: bytes of an older one are dropped.
        var writer = 0

        /// The bytes that have been received, each at its offset.
        package var bytes: [UInt8] { contents.bytes }
        /// The number of received bytes.
        package var count: Int64 { contents.count }
    }

    /// The records of a server so far.
    struct Seen: Sendable {
        var requests: [ReceivedRequest] = []
        var uploads: [Int: Upload] = [:]
        var created = 0
        var connections = 0
        var bodyBytes: Int64 = 0
    }

    /// The TCP port.
    package let port: UInt16
    private let listener: Listener
    private let log: ServerLog<Seen>
    private let host: String

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - dialect: the protocol.
    ///   - configuration: everything else.
    ///   - fault: the fault of each request, called on the connection's thread when the head has been read; `nil` for no fault.
    /// - Throws: ``TestServerError``.
    package init(
        _ dialect: Dialect, configuration: Configuration = Configuration(),
        fault: @escaping @Sendable (Turn) -> Fault? = { _ in nil }
    )
        throws
    {
        let shelf = configuration.directory.map { UploadShelf($0) }
        var seen = Seen()
        seen.uploads = try shelf?.load() ?? [:]
        seen.created = seen.uploads.keys.max() ?? 0
        let log = ServerLog(seen)
        listener = try Listener(
            at: configuration.address, namespace: configuration.namespace?.path, maximumConnections: 256, receiveBuffer: nil
        ) { socket, stop in
            let number = log.change { seen in
                seen.connections += 1
                return seen.connections
            }
            UploadConversation(
                number: number, channel: Channel(socket, stop: stop), dialect: dialect, configuration: configuration,
                fault: fault,
                shelf: shelf, log: log
            ).run()
        }
        self.log = log
        port = listener.port
        if case .ip(let host, _) = configuration.address { self.host = host } else { host = "localhost" }
    }

    /// Ends all connections and threads, and waits until they have ended.
    package func stop() { listener.end() }

    /// The URL that creates uploads. An address that cannot be in a URL is a mistake of the test and traps.
    package var url: URL {
        guard let url = URL(string: "http://\(host):\(port)/uploads") else { preconditionFailure("no URL: \(host)") }
        return url
    }

    /// The requests whose heads were read, oldest first; `bodyLength` is the number of bytes that were read of the body.
    package var requests: [ReceivedRequest] { log.state.requests }
    /// The uploads, in the order in which they were created.
    package var uploads: [Upload] { log.state.uploads.sorted { $0.key < $1.key }.map(\.value) }
    /// The number of bytes that were read of the bodies of all requests.
    package var bodyBytes: Int64 { log.state.bodyBytes }

    /// Waits until this number of bytes of bodies has been read, for at most `limit`; 30 s by default.
    ///
    /// - Throws: ``TestServerError`` if that does not happen in time.
    package func awaitBodyBytes(_ count: Int64, within limit: Duration = .seconds(30)) async throws {
        _ = try await log.wait(for: "\(count) bytes", within: limit) { $0.bodyBytes >= count }
    }
}
