import FoundationEssentials
import Pacing

@testable import HTTPSession

/// A server that stores the bytes that arrive, and a network that loses requests and answers. A request that no correct client
/// sends is a fault.
struct SimulatedUploadServer {
    let kind: UploadProtocol
    let length: Int64
    let limit: Int64?
    var stored: Int64?
    var isComplete = false
    var wasComplete = false
    var mayFail = true
    var hasSaidLimit = false
    var faults: [String] = []

    private let url = URL(string: "https://host/files") ?? URL(fileURLWithPath: "/")

    init(_ kind: UploadProtocol, length: Int64, limit: Int64?) {
        (self.kind, self.length, self.limit) = (kind, length, limit)
    }

    private var isTus: Bool { kind == .tus }

    private func head(_ status: Int, _ fields: [String]) -> ResponseHead? {
        let text = "HTTP/1.1 \(status) X\r\n" + (fields + ["Tus-Resumable: 1.0.0"]).map { $0 + "\r\n" }.joined() + "\r\n"
        return ResponseHead(bytes: Array(text.utf8))
    }

    private mutating func limitFields() -> [String] {
        guard let limit, !isTus else { return [] }
        hasSaidLimit = true
        return ["Upload-Limit: max-append-size=\(limit)"]
    }

    /// Takes the machine's request. - Returns: the machine's verdict on the answer; `nil` if no answer came.
    mutating func serve(_ machine: inout UploadMachine, _ generator: inout SplitMix64) -> UploadMachine.Verdict? {
        let chance = mayFail ? Int.random(in: 0..<13, using: &generator) : 12
        if chance == 0 {
            machine.lost(sent: machine.bodyStart, hasSent: false)
            return nil
        }
        if chance == 1, isTus { stored = nil }
        // A server that restarts has only the bytes that were on its disk.
        if chance == 11, mayFail, isTus, let known = stored, !isComplete {
            stored = .random(in: known / 2...known, using: &generator)
        }
        var (offset, count): (Int64, Int64) = (machine.bodyStart, machine.bodyCount)
        if offset < 0 || offset + count > length { faults.append("\(machine.request) of \(length)") }
        if hasSaidLimit, let limit, count > limit { faults.append("\(count) bytes beyond the limit \(limit)") }
        var (status, fields): (Int, [String])
        switch machine.request {
        case .create:
            if machine.location != nil { faults.append("created again while it exists") }
            if wasComplete, !machine.isIdempotent, length > 0 { faults.append("created again after it was complete") }
            stored = 0
            isComplete = false
            if !isTus, chance != 2, let head = head(104, ["Location: /up", "Upload-Draft-Interop-Version: 8"] + limitFields()) {
                // A client that ignores this and continues is judged by its answer.
                _ = machine.received(interim: head, from: url, sent: 0)
            }
            (status, fields) = (201, ["Location: /up"])
        case .askOffset:
            if machine.location == nil { faults.append("asked for an offset without a location") }
            guard let stored else { return answer(404, [], &machine, sent: offset) }
            fields = ["Upload-Offset: \(stored)", "Upload-Length: \(length)", "Upload-Complete: ?\(isComplete ? 1 : 0)"]
            if chance == 3 {
                machine.lost(sent: offset, hasSent: true)
                return nil
            }
            return answer(chance == 4 ? 503 : 200, chance == 4 ? [] : fields + limitFields(), &machine, sent: offset)
        case .append:
            guard let stored else { return answer(404, [], &machine, sent: offset + count) }
            if stored != offset || chance == 5 || isComplete {
                return answer(409, isTus ? [] : ["Upload-Offset: \(stored)"], &machine, sent: offset + count)
            }
            (status, fields) = (204, [])
        }
        // `sent` bytes were sent, and `arrived` of them reached the server.
        let sent = chance == 6 || chance == 7 ? Int64.random(in: 0...count, using: &generator) : count
        let arrived = sent < count || chance == 8 ? Int64.random(in: 0...sent, using: &generator) : count
        offset += arrived
        stored = offset
        let allArrived = arrived == count
        if allArrived, offset == length {
            isComplete = true
            wasComplete = true
        }
        if chance == 6 || chance == 7 || chance == 9 {
            machine.lost(sent: machine.bodyStart + sent, hasSent: true)
            return nil
        }
        if !allArrived || chance == 10 {
            (status, fields) = (503, [])
        } else if isTus {
            fields.append("Upload-Offset: \(offset)")
        } else {
            fields.append("Upload-Complete: ?\(isComplete ? 1 : 0)")
        }
        return answer(status, fields, &machine, sent: machine.bodyStart + sent)
    }

    /// Checks the verdict that ends an upload. - Returns: its fault; `nil` if the verdict is true.
    func objection(to machine: UploadMachine, _ verdict: UploadMachine.Verdict) -> String? {
        switch verdict {
        case .next, .retry: return "no end"
        case .refuse(let refusal):
            guard refusal.reason.contains("may have been complete") else { return "refused: \(refusal.reason)" }
            return wasComplete || machine.isCompletionUnknown ? nil : "given up although the end is known"
        case .final:
            // The resource was missing three times, or has no location.
            guard stored != nil, machine.location != nil, length > 0 else { return nil }
            return isComplete && stored == length ? nil : "ended with \(stored ?? 0) of \(length)"
        }
    }

    private func answer(_ status: Int, _ fields: [String], _ machine: inout UploadMachine, sent: Int64) -> UploadMachine.Verdict?
    {
        head(status, fields).map { machine.received($0, from: url, sent: sent) }
    }
}
