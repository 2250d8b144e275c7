import Console
import FoundationEssentials
package import Reachability

// Descriptions of the library's values for people, in one line without control characters.

extension NetworkPath {
    /// The path as `via eth0 (wired), IPv4 IPv6, gateway 192.0.2.1, DNS server 192.0.2.53`, or its cause if it is unsatisfied.
    package var sentence: String {
        if let cause { return cause.sentence }
        var parts: [String] = []
        if let interface {
            let under = underlying.map { " over \($0.name)" } ?? ""
            parts.append("via \(interface.name) (\(interface.type.rawValue))\(under)")
        }
        if let v4 = interfaceV4, let v6 = interfaceV6, v4.index != v6.index { parts.append("IPv6 via \(v6.name)") }
        let abilities = [(supportsIPv4, "IPv4"), (supportsIPv6, "IPv6")].filter(\.0).map(\.1)
        if !abilities.isEmpty { parts.append(abilities.joined(separator: " ")) }
        if !gateways.isEmpty {
            parts.append("gateway \(gateways.map(\.description).joined(separator: " "))")
        }
        // Whether a configured server answers is another question, so nothing here says that names are resolved.
        parts.append(nameServerSentence)
        if isExpensive { parts.append("expensive") }
        if isConstrained { parts.append("constrained") }
        if !isConsistent { parts.append("not consistent") }
        return TextStyle.printable(parts.joined(separator: ", "))
    }
}

extension NetworkPath {
    /// The configured name servers: `DNS server 192.0.2.53`, or that there is none.
    package var nameServerSentence: String {
        guard supportsDNS else { return "no DNS server" }
        switch resolvers.count {
        case 0: return "DNS server configured"
        case 1: return "DNS server \(resolvers[0])"
        default: return "DNS servers \(resolvers.map(\.description).joined(separator: " "))"
        }
    }
}

extension NetworkInterface {
    /// The interface's type: `wired`, or `wired, virtual` if the type alone does not imply that.
    package var kindSentence: String {
        var parts = [type.rawValue]
        if isVirtual, type != .virtual, type != .loopback, type != .tunnel { parts.append("virtual") }
        if isExpensive { parts.append("expensive") }
        return parts.joined(separator: ", ")
    }

    /// Returns the first addresses with their prefixes, at most `limit` and as many as fit, and the number of further addresses.
    package func addressSentence(limit: Int, columns: Int) -> String {
        CountedList(addresses.map(\.description), limit: limit, noun: ("address", "addresses")).text(columns: columns)
    }
}

extension Endpoint {
    /// The endpoint as the user, or a recording, wrote it.
    package var sentence: String { TextStyle.printable(text) }
}

extension Record {
    /// Returns the name of the record's target: that of the configuration, else its text.
    func nameSentence(_ endpoint: Endpoint) -> String { TextStyle.printable(identity?.name ?? endpoint.text) }
}

extension ServerUpdate {
    /// The status in words: `up`, or `up, pending` after a failure that does not change the status yet. That of a job that runs is `up, running`.
    var statusWords: String {
        [statusName.rawValue, pending == nil ? nil : "pending", job == .running ? "running" : nil].compactMap { $0 }
            .joined(separator: ", ")
    }

    /// The color and symbol of the status. A failure that is pending makes it uncertain.
    var assessment: TextStyle.Assessment { pending == nil ? statusName.assessment : .uncertain }

    /// The server's answer as `0.2 ms from 192.0.2.7 via eth0 (wired)`, or the cause of its status or of the failure that is pending, and
    /// whether its probes are paused.
    package var sentence: String {
        let text = (pending ?? cause)?.sentence ?? answer
        guard isPaused else { return text }
        return [text, "(probes paused: the byte budget of the metered interface is used up)"].filter { !$0.isEmpty }
            .joined(separator: " ")
    }

    private var answer: String {
        var parts: [String] = []
        if let roundTrip { parts.append("\(Milliseconds.text(roundTrip)) ms") }
        if let address { parts.append("from \(address)") }
        if let interface { parts.append("via \(interface.name) (\(interface.type.rawValue))") }
        return TextStyle.printable(parts.joined(separator: " ") + endpoint.responseText(responseTime))
    }
}

extension AddressStatus {
    /// Why the address does not answer, or is not known to.
    package var sentence: String {
        if let cause { return cause.sentence }
        return statusName == .unreachable ? "this machine has no route to it" : ""
    }
}

extension ServerUpdate {
    /// The status of a canary, in one sentence.
    package var canarySentence: String {
        let name = "the canary \(endpoint.text)"
        let reason = cause.map { "\($0.detail) (\($0.name))" } ?? "the cause is not known"
        let text =
            switch statusName {
            case .up: "\(name) is up: its answer is the known one, so no captive portal answers in its place"
            case .degraded: "\(name) is degraded: \(reason); its answer is the known one"
            case .down, .unreachable: "\(name) is \(statusName.rawValue): \(reason)"
            case .unknown: "the status of \(name) is not known: no probe has ended"
            }
        return TextStyle.printable(text)
    }
}

extension Incident {
    /// Whether the incident affects several targets. An incident of one target or of the path repeats their records.
    package var isShared: Bool { targetCount > 1 }

    /// Names the component that is at fault, without control characters.
    ///
    /// - Parameter names: the names of ``targets`` for people; empty if they are their texts.
    /// - Returns: the kind and the name; this machine if an interface has no name.
    package func subjectSentence(_ names: [String] = []) -> String {
        if subject.kind == .interface, subject.name == nil { return "this machine" }
        guard subject.kind == .target, let name = names.first, targets.first?.text == subject.name else {
            return TextStyle.printable(subject.description)
        }
        return TextStyle.printable("\(subject.kind.rawValue) \(name)")
    }

    /// The state, and whether the targets flap: `open`, `open (flapping)`, `merged into 1785672001000-3`.
    package var stateSentence: String {
        let text = into.map { "\(state.rawValue) into \($0)" } ?? state.rawValue
        return TextStyle.printable(kind == .flapping ? "\(text) (flapping)" : text)
    }

    /// Describes the incident in one line.
    ///
    /// - Parameter names: the names of ``targets`` for people; empty if they are their texts.
    /// - Returns: the targets and the cause, as `3 targets (a:1, b:2, c:3), tcp/refused: …`, and the duration if it has ended.
    package func sentence(_ names: [String] = []) -> String {
        let names = (names.isEmpty ? targets.map(\.text) : names).prefix(3).joined(separator: ", ")
        let further = targetCount > 3 ? ", …" : ""
        let noun = targetCount == 1 ? "target" : "targets"
        let affected = "\(targetCount) \(noun) (\(names)\(further))"
        let duration = ended.map { " after \(TimeSpan.rough($0.elapsed(since: began)))" } ?? ""
        return TextStyle.printable("\(affected), ") + cause.sentence + duration
    }
}

extension GapReason {
    /// The participle that begins the description of a gap.
    var sentence: String {
        switch self {
        case .suspend: "suspended"
        case .stopped: "not running"
        }
    }
}

extension ProbeReport {
    /// The probe's result as `0.2 ms from 192.0.2.7`, or the cause of its failure.
    package var sentence: String {
        if let cause { return cause.sentence }
        let time = roundTrip.map { "\(Milliseconds.text($0)) ms" } ?? "answered"
        return (address.map { "\(time) from \($0)" } ?? time) + endpoint.responseText(responseTime)
    }
}

extension Endpoint {
    /// Whether the response time is more than the connection, which is the round trip of a TCP target. Text shows no other.
    package var hasOwnResponseTime: Bool { scheme.hasResponse }

    /// The end of a sentence: `, response in 20 ms`.
    fileprivate func responseText(_ time: Duration?) -> String {
        guard hasOwnResponseTime, let time else { return "" }
        return ", response in \(Milliseconds.text(time)) ms"
    }
}
