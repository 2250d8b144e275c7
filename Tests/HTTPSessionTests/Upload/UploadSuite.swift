import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

/// A suite of resumable uploads to a server that drops, refuses and forgets them. The body has 1,000,000 bytes.
protocol UploadSuite {
    /// The directory with the file `body`.
    var folder: ScratchDirectory { get }
    /// The events of the sessions.
    var log: EventLog { get }
}

extension UploadSuite {
    static var size: Int64 { 1_000_000 }

    /// A directory with the file `body`.
    static func makeFolder() throws -> ScratchDirectory {
        let folder = try ScratchDirectory()
        try pattern(size).write(to: folder.url("body"))
        return folder
    }

    func session(_ retries: Int? = 4, _ change: (inout SessionConfiguration) -> Void = { _ in }) throws
        -> HTTPSessionManager
    {
        let policy = RetryPolicy(maximumRetries: retries, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        return try HTTPSessionManager(
            configuration: localConfiguration {
                $0.retryPolicy = policy
                change(&$0)
            }, eventMonitors: [log])
    }

    func request(_ server: UploadServer, _ body: RequestBody? = nil, _ fields: HTTPFields = [:]) -> TransferRequest {
        TransferRequest(url: server.url, method: .post, headerFields: fields, body: body ?? .file(folder.url("body")))
    }

    func methods(_ server: UploadServer) -> String { server.requests.map(\.method).joined(separator: " ") }

    func expectCompleteUpload(_ server: UploadServer, at index: Int = 0, location: SourceLocation = #_sourceLocation)
        throws
    {
        let upload = try #require(server.uploads.dropFirst(index).first, sourceLocation: location)
        #expect(Data(upload.bytes) == pattern(Self.size), sourceLocation: location)
    }

    /// The faults of the first requests of one method, in order.
    static func faults(_ faults: [UploadServer.Fault?], of method: String = "PATCH")
        -> @Sendable (UploadServer.Turn) -> UploadServer.Fault?
    {
        let remaining = Locked(faults)
        return { turn in
            guard turn.request.method == method else { return nil }
            return remaining.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }
}
