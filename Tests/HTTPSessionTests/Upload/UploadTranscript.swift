import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// A machine and its events, in a line for each: the response or loss, the verdict, and the next request.
struct UploadTranscript {
    var machine: UploadMachine
    private let url = URL(string: "https://host/files?x=1") ?? URL(fileURLWithPath: "/")

    init(_ kind: UploadProtocol, length: Int64 = 100, isIdempotent: Bool = false, forwarding: Set<HTTPField.Name> = []) {
        machine = UploadMachine(
            kind.kind, length: length, isIdempotent: isIdempotent, allowsInsecure: false, forwarding: forwarding)
    }

    static func head(_ status: Int, _ fields: [String]) throws -> ResponseHead {
        let text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return try #require(ResponseHead(bytes: Array(text.utf8)))
    }

    /// `sent`: the end of the sent bytes; by default the end of the request's part.
    mutating func answer(
        _ status: Int, _ fields: String..., sent: Int64? = nil, is verdict: UploadMachine.Verdict,
        then request: UploadMachine.Request?,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let end = sent ?? machine.bodyStart + machine.bodyCount
        let found = machine.received(try Self.head(status, fields), from: machine.location ?? url, sent: end)
        #expect(found == verdict, sourceLocation: location)
        if let request { #expect(machine.request == request, sourceLocation: location) }
    }

    mutating func refused(
        _ status: Int, _ fields: String..., sent: Int64? = nil, because part: String,
        code: HTTPSessionError.Code = .badServerResponse, location: SourceLocation = #_sourceLocation
    ) throws {
        let end = sent ?? machine.bodyStart + machine.bodyCount
        let found = machine.received(try Self.head(status, fields), from: machine.location ?? url, sent: end)
        guard case .refuse(let refusal) = found else {
            Issue.record("\(found)", sourceLocation: location)
            return
        }
        #expect(refusal.reason.contains(part), sourceLocation: location)
        #expect(refusal.code == code, sourceLocation: location)
    }

    mutating func interim(
        _ status: Int, _ fields: String..., sent: Int64 = 0, is stop: UploadMachine.EarlyStop? = nil,
        location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(
            machine.received(interim: try Self.head(status, fields), from: url, sent: sent) == stop, sourceLocation: location)
    }

    mutating func lost(
        sent: Int64, hasSent: Bool = true, then request: UploadMachine.Request, location: SourceLocation = #_sourceLocation
    ) {
        machine.lost(sent: sent, hasSent: hasSent)
        #expect(machine.request == request, sourceLocation: location)
    }
}
