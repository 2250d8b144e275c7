import Console
import FoundationEssentials
import HTTPSession
import Reachability

/// The stage that a transfer's last attempt reached.
enum AttemptStage: Int, Hashable, Comparable {
    /// No address of the server, or of its proxy, is known.
    case unresolved
    /// An address is known, but no connection was made.
    case unconnected
    /// A connection was made. TLS, or the proxy's tunnel, was not.
    case connected
    /// The request could be sent.
    case requested

    static func < (one: AttemptStage, other: AttemptStage) -> Bool { one.rawValue < other.rawValue }
}

extension AttemptStage {
    init(_ metrics: TransactionMetrics) {
        let isAddress = URL(string: metrics.url)?.host(percentEncoded: false).flatMap { IPAddress($0) } != nil
        if metrics.requestStart != nil || metrics.responseStart != nil {
            self = .requested
        } else if metrics.connectEnd != nil || (metrics.isReusedConnection && metrics.remoteAddress != nil) {
            self = .connected
        } else {
            self = metrics.connectStart != nil || isAddress ? .unconnected : .unresolved
        }
    }
}

/// The result of a probe of the endpoint to which a transfer makes its connection.
enum Diagnosis: Hashable {
    case answers
    case fails(Cause)

    /// The value is `nil` if the probe has no result yet.
    init?(_ update: ServerUpdate) {
        switch update.statusName {
        case .unknown: return nil
        case .up, .degraded: self = .answers
        case .down, .unreachable:
            guard let cause = update.cause else { return nil }
            self = .fails(cause)
        }
    }

    /// Returns the cause, which names the proxy if the endpoint is a proxy.
    func cause(through proxy: String?) -> Cause? {
        guard case .fails(let cause) = self else { return nil }
        return cause.naming(proxy: proxy)
    }
}

extension Cause {
    /// Returns this cause with the proxy (HOST:PORT) as the failing endpoint. Causes on this machine stay unchanged, because
    /// they fail for every endpoint.
    func naming(proxy: String?) -> Cause {
        guard let proxy, ![.link, .address, .local].contains(layer), evidence["proxy"] == nil else { return self }
        var evidence = evidence
        evidence["proxy"] = .text(proxy)
        // The proxy itself answered.
        let answer = detail.replacing(#/^the (server|proxy) (?=answer|refused)/#, with: "the proxy \(proxy) ")
        let text = layer == .http ? answer : "the proxy \(proxy) cannot be reached: \(detail)"
        return Cause(layer, code, detail: text, evidence: evidence)
    }
}

extension TransferProblem {
    /// Returns the problem with the redirects before it, if a connection or a TLS handshake has failed behind them.
    func behind(_ redirects: [String], of host: String) -> TransferProblem {
        guard let last = redirects.last, connectionFailure != nil || cause.layer == .tls, cause.evidence["redirects"] == nil
        else {
            return self
        }
        var result = self
        result.cause = cause.behind(redirects, of: host)
        result.message = "\(host) redirects to \(ShortURL.text(last)): \(message)"
        return result
    }

    /// Returns the problem with the cause that the attempt's stage and a probe show. A problem that is not about the connection
    /// stays unchanged.
    func explained(at stage: AttemptStage, by diagnosis: Diagnosis?, through proxy: String?) -> TransferProblem {
        var result = self
        if isAnswerOfProxy {
            result.cause = cause.naming(proxy: proxy)
            if result.cause != cause { result.message = result.cause.detail }
            return result
        }
        guard let failure = connectionFailure else { return self }
        // The session has found out how far the handshake or the response came.
        if failure == .timedOut, hasFoundCause, [.tls, .http].contains(cause.layer) {
            result.message = cause.detail
            return result
        }
        if stage >= .connected, failure == .timedOut {
            let isHandshake = stage == .connected && proxy == nil
            let server = proxy.map { "the proxy \($0)" } ?? "the server"
            var evidence = cause.evidence
            if let proxy, stage == .connected { evidence["proxy"] = .text(proxy) }
            result.cause =
                isHandshake
                // No byte of a handshake is known.
                ? Cause(
                    .tls, .handshakeStalled, detail: "\(server) accepts the connection and does not answer the TLS handshake",
                    evidence: evidence)
                : Cause(
                    .http, .timeout, detail: "\(stage == .connected ? server : "the server") did not answer in time",
                    evidence: evidence)
            result.message = result.cause.detail
        } else if stage < .connected, let found = diagnosis?.cause(through: proxy) {
            result.cause = found
            result.message = "\(found)"
        } else if stage < .connected || failure == .proxyFailed {
            if stage == .unresolved, failure == .timedOut {
                result.cause = Cause(.dns, .resolverSilent, detail: "no name server answered in time", evidence: cause.evidence)
                result.message = "\(result.cause)"
            }
            let named = result.cause.naming(proxy: proxy)
            if named != result.cause { (result.cause, result.message) = (named, named.detail) }
        }
        return result
    }
}
