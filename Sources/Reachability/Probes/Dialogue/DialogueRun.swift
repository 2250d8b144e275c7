internal import Certificates
internal import Expressions
internal import Pacing

/// The dialogue of a probe, and the handshake in it.
struct DialoguePlan: StreamPlan {
    let scheme: Endpoint.Scheme
    let steps: [DialogueStep]
    /// The handshake; `nil` for a dialogue without TLS.
    let tls: TLSPlan?
    /// The name of the server, for texts.
    let host: String

    init(_ endpoint: Endpoint, _ settings: ProbeSettings) {
        scheme = endpoint.scheme
        steps = settings.dialogue.steps
        let tls = TLSPlan(endpoint, settings)
        self.tls = steps.contains(.startTLS) ? tls : nil
        host = tls.serverName
    }

    func makeRun(deadline: Int64) -> any StreamRun { DialogueRun(self, deadline: deadline) }
}

/// A dialogue on a TCP connection.
final class DialogueRun: StreamRun {
    /// The most bytes of a line, of a message, and of a text to send.
    static let lineLimit = 8_192
    /// The most bytes of a text without lines, which is searched again with each piece that arrives.
    static let textLimit = 4_096
    /// The most bytes of all that a server says.
    static let totalLimit = 65_536
    private static let shownLines = 4

    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    private(set) var deadline: Int64
    let context: TLSClientContext?
    private let plan: DialoguePlan
    private var client: TLSClient?
    private var output: [UInt8] = []
    /// What has arrived, and belongs to no step yet.
    private var input: [UInt8] = []
    /// The bytes of ``input`` in which there is no line end.
    private var searched = 0
    private var received = 0
    private var done = 0
    private var facts = DialogueFacts()
    /// What the groups of the last expression have captured.
    private var groups: [String: String] = [:]
    /// Where the first of them ends; `nil` without groups.
    private var endOfFirstGroup: Int?
    private var started: Int64 = 0
    private var handshakeStarted: Int64 = 0
    private var hasReceived = false

    init(_ plan: DialoguePlan, deadline: Int64) {
        (self.plan, self.deadline) = (plan, deadline)
        context = plan.tls?.makeContext()
        facts.done = 0
    }

    var endsGracefully: Bool { done == plan.steps.count }
    var beginsWithTLS: Bool { plan.steps.first == .startTLS }

    func connected(_ now: Int64) {
        started = now
        proceed(now)
    }

    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    func noteSent(_ count: Int) { result.bytesSent += count }

    func receive(_ bytes: UnsafeRawBufferPointer, now: Int64) {
        result.bytesReceived += bytes.count
        guard !hasEnded else { return }
        guard let client else { return read(bytes, now) }
        let wasHandshaking = client.state == .handshaking
        let step = client.receive(bytes)
        output += step.bytesToSend
        if wasHandshaking, client.facts.isComplete { handshakeCompleted(client, now) }
        if !step.plaintext.isEmpty { step.plaintext.withUnsafeBytes { read($0, now) } }
        guard !hasEnded else { return }
        switch step.state {
        case .failed: fail(.closed, .protocolError)
        case .closed: inputEnded(now)
        case .established: if done == plan.steps.count, !client.mayStillBeRefused { complete(now) }
        case .handshaking: break
        }
    }

    func inputEnded(_ now: Int64) {
        guard !hasEnded else { return }
        // The last line may have no end.
        if !input.isEmpty, done < plan.steps.count, case .expectLine = plan.steps[done] {
            input += Array("\n".utf8)
            proceed(now)
        }
        fail(.closed, .endOfFile)
    }

    func connectionFailed(_ number: Int32) { fail(.systemError(number), .systemError(number)) }

    func deadlineReached(_ progress: ConnectionProgress?) {
        guard !hasEnded else { return }
        result.note(progress)
        // A server that was silent after the handshake has accepted the client.
        guard done < plan.steps.count else { return end(.completed) }
        result.isAtDeadline = true
        if !input.isEmpty { noteOther(input[...]) }
        fail(.deadline, .deadline)
    }

    private func handshakeCompleted(_ client: TLSClient, _ now: Int64) {
        result.handshakeNanoseconds = max(0, now - handshakeStarted)
        // A server whose certificate is not accepted is told no more.
        guard plan.tls?.settings.isInsecure == true || client.facts.isCertificateAccepted else { return end(.completed) }
        stepDone()
        // The server's refusal arrives after the handshake, as in TLSRun.
        if done == plan.steps.count, client.mayStillBeRefused {
            deadline = min(deadline, now.addingSaturated(TLSRun.refusalTime))
        } else {
            proceed(now)
        }
    }

    private func read(_ bytes: UnsafeRawBufferPointer, _ now: Int64) {
        guard !hasEnded, !bytes.isEmpty else { return }
        if !hasReceived {
            hasReceived = true
            result.processingNanoseconds = max(0, now - started - (result.handshakeNanoseconds ?? 0))
        }
        received += bytes.count
        guard received <= Self.totalLimit else { return fail(.unreadable("it is longer than \(Self.totalLimit) bytes")) }
        input += bytes
        proceed(now)
    }

    /// Takes steps until one has to wait.
    private func proceed(_ now: Int64) {
        while !hasEnded {
            guard done < plan.steps.count else { return complete(now) }
            switch plan.steps[done] {
            case .send(let text): send(Array(filled(text).utf8))
            case .sendBytes(let bytes): send(bytes)
            case .startTLS: return startTLS(now)
            case .expectLine(let expectation): guard readLines(expectation) else { return }
            case .expectText(let expectation): guard readText(expectation) else { return }
            case .expectMessage(let message): guard readMessage(message) else { return }
            }
        }
    }

    private func stepDone() {
        done += 1
        facts.done = done
        facts.others = nil
    }

    private func send(_ bytes: [UInt8]) {
        output += client?.send(bytes) ?? bytes
        stepDone()
    }

    private func startTLS(_ now: Int64) {
        // The handshake is on its way.
        guard client == nil, let tls = plan.tls else { return }
        // Nobody has protected what came before the handshake.
        guard input.isEmpty else { return fail(.unreadable("it continues before the handshake")) }
        handshakeStarted = now
        client = result.startHandshake(tls, context, output: &output)
        if client == nil { end(.completed) }
    }

    // MARK: What the server says

    /// Returns whether a line has matched.
    private func readLines(_ expectation: DialogueStep.Expectation) -> Bool {
        var (place, found) = (0, Found.nothing)
        // Only the last lines are shown: a server may send ten thousand.
        var skipped: [Range<Int>] = []
        while found == .nothing, let end = input[max(place, searched)...].firstIndex(of: UInt8(ascii: "\n")) {
            let hasReturn = end > place && input[end - 1] == UInt8(ascii: "\r")
            let line = input[place..<(hasReturn ? end - 1 : end)]
            found = find(expectation, line)
            if found != .match { skipped = skipped.suffix(Self.shownLines - 1) + [line.startIndex..<line.endIndex] }
            place = end + 1
        }
        for line in skipped { noteOther(input[line]) }
        input.removeFirst(place)
        searched = found == .nothing ? input.count : 0
        if found == .nothing, input.count > Self.lineLimit { fail(.unreadable("a line is longer than \(Self.lineLimit) bytes")) }
        return decide(found)
    }

    private func readText(_ expectation: DialogueStep.Expectation) -> Bool {
        guard !input.isEmpty else { return false }
        let found = find(expectation, input[...])
        if found == .match { input.removeFirst(endOfFirstGroup ?? input.count) }
        if found == .nothing, input.count > Self.textLimit { fail(.unreadable("it is longer than \(Self.textLimit) bytes")) }
        return decide(found)
    }

    private enum Found: Equatable {
        case nothing
        case match
        case refusal(String)
        case lack(String)
    }

    private func find(_ expectation: DialogueStep.Expectation, _ bytes: ArraySlice<UInt8>) -> Found {
        if match(expectation.expression, bytes) {
            facts.answer = Self.shown(bytes)
            return .match
        }
        if expectation.refusal?.matches(bytes) == true { return .refusal(Self.shown(bytes)) }
        return expectation.lack?.matches(bytes) == true ? .lack("its answer ends with \"\(Self.shown(bytes))\"") : .nothing
    }

    /// Returns whether the step is done.
    private func decide(_ found: Found) -> Bool {
        switch found {
        case .nothing: return false
        case .match:
            stepDone()
            return true
        case .refusal(let text): fail(.refused(text))
        case .lack(let reason): fail(.withoutTLS(reason))
        }
        return false
    }

    private func readMessage(_ message: DialogueMessage) -> Bool {
        switch message.read(input[...]) {
        case .incomplete: if input.count > Self.lineLimit { fail(.unreadable("it is longer than \(Self.lineLimit) bytes")) }
        case .accepted(let count):
            input.removeFirst(count)
            stepDone()
            return true
        case .refused(let text): fail(.refused(text))
        case .withoutTLS(let reason): fail(.withoutTLS(reason))
        case .unreadable: fail(.unreadable("its first bytes are \"\(ExternalText.excerpt(input[...]))\""))
        }
        return false
    }

    private func match(_ expression: Expressions.Expression, _ bytes: ArraySlice<UInt8>) -> Bool {
        guard expression.groupCount > 0 else {
            guard expression.matches(bytes) else { return false }
            (groups, endOfFirstGroup) = ([:], nil)
            return true
        }
        guard let found = expression.groups(in: bytes) else { return false }
        (groups, endOfFirstGroup) = ([:], found.first?.bytes.endIndex)
        for (number, group) in found.enumerated() {
            let text = String(decoding: group.bytes, as: UTF8.self)
            groups["\(number + 1)"] = text
            guard let name = group.name else { continue }
            groups[name] = text
            facts.captures = (facts.captures ?? [:]).merging([name: Self.shown(group.bytes)]) { $1 }
        }
        return true
    }

    private static func shown(_ bytes: ArraySlice<UInt8>) -> String {
        ExternalText.shortened(String(decoding: bytes.prefix(lineLimit), as: UTF8.self))
    }

    private func noteOther(_ line: ArraySlice<UInt8>) {
        facts.others = Array(((facts.others ?? []) + [Self.shown(line)]).suffix(Self.shownLines))
    }

    /// Replaces what stands for captured groups, and ends the line.
    private func filled(_ text: String) -> String {
        var (filled, rest) = ("", text[...])
        while let sign = rest.firstIndex(of: "$") {
            filled += rest[..<sign]
            rest = rest[rest.index(after: sign)...]
            if rest.first == "$" {
                filled += "$"
                rest = rest.dropFirst()
            } else if rest.first == "{", let end = rest.firstIndex(of: "}") {
                let name = String(rest[rest.index(after: rest.startIndex)..<end])
                filled += name == "host" ? plan.host : groups[name] ?? ""
                // A server chooses what is captured.
                guard filled.utf8.count <= Self.lineLimit else { return String(filled.prefix(Self.lineLimit)) + "\r\n" }
                rest = rest[rest.index(after: end)...]
            } else {
                filled += "$"
            }
        }
        filled += rest
        return filled.utf8.last == UInt8(ascii: "\n") ? filled : filled + "\r\n"
    }

    // MARK: The end

    private func complete(_ now: Int64) {
        // The time of the handshake is its own.
        let spoken = now - started - (result.handshakeNanoseconds ?? 0)
        if let waited = result.processingNanoseconds { result.transferNanoseconds = max(0, spoken - waited) }
        end(.completed)
    }

    private func fail(_ failure: DialogueFacts.Failure, _ handshakeEnd: TLSHandshakeEnd = .completed) {
        guard !hasEnded else { return }
        // A handshake that has not ended is judged as one.
        let isHandshaking = client.map { !$0.facts.isComplete } ?? false
        let isRefusedLater = done == plan.steps.count
        if !isHandshaking, !isRefusedLater { facts.failure = failure }
        if done < plan.steps.count { facts.awaited = plan.steps[done].awaited }
        if plan.asksForTLS(at: done) { facts.asksForTLS = true }
        if plan.knowsRefusals(at: done) { facts.knowsRefusals = true }
        end(handshakeEnd)
        if isRefusedLater, result.tls != nil { result.handshakeEnd = handshakeEnd }
    }

    private func end(_ handshakeEnd: TLSHandshakeEnd) {
        if let client { result.endHandshake(client, handshakeEnd, output: &output) }
        client = nil
        result.facts[DialogueFacts.self] = facts
        hasEnded = true
    }
}

extension DialoguePlan {
    /// Whether the step waits for the consent to TLS: it is the last expectation before TLS, and something was sent before it. A message says itself
    /// what it refuses.
    fileprivate func asksForTLS(at step: Int) -> Bool {
        guard let beginning = steps.firstIndex(of: .startTLS), step < beginning else { return false }
        if case .expectMessage = steps[step] { return false }
        let isLast = !steps[(step + 1)..<beginning].contains { $0.awaited != nil }
        return isLast && steps[..<step].contains { $0.awaited == nil }
    }

    /// Whether the step recognizes refusals.
    fileprivate func knowsRefusals(at step: Int) -> Bool {
        guard step < steps.count else { return false }
        return switch steps[step] {
        case .expectLine(let expectation), .expectText(let expectation): expectation.refusal != nil
        case .expectMessage: true
        case .send, .sendBytes, .startTLS: false
        }
    }
}
