import ByteComparison
import FoundationEssentials
import HTTPSession

/// What has become of a report that was sent.
enum DeliveryResult: Hashable, Sendable {
    case delivered
    /// The service refuses the report permanently, for this reason.
    case refused(String)
    /// The report can be delivered later.
    case undelivered(String)
}

extension DeliveryResult {
    /// The statuses that are retried within one run.
    static let retriedStatuses = TransferProblem.temporaryStatuses
    /// The statuses with which the service refuses this report for ever: a malformed one, an unknown name or a wrong token, and a report that is too
    /// large.
    private static let refusals: Set = [400, 404, 413]

    /// The result of a response.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - phrase: The reason phrase.
    ///   - location: The field `Location` of a redirect. No redirect is followed: most would turn the report into a GET without its body and its token.
    ///   - body: The first bytes of the body.
    ///   - hasToken: Whether the request had a token.
    init(status: Int, phrase: String, location: String?, body: Data, hasToken: Bool) {
        if status == 200 {
            // Anybody can answer 200: the login page of a network, or another server at this address.
            let text = String(decoding: body.prefix(16), as: UTF8.self).lowercased()
            let isOK = text == "ok" || text == "ok\n" || text == "ok\r\n"
            self =
                isOK ? .delivered : .undelivered("the response is not that of a netwatch service; check the address of --service")
            return
        }
        var reason = "the service answered \(status)\(phrase.isEmpty ? "" : " \(phrase)")"
        if let detail = Self.detail(body) { reason += ": \(detail)" }
        if (300..<400).contains(status), let location {
            reason += "; it redirects to \(location): name that service with --service"
        }
        if status == 404, !hasToken { reason += "; no token was sent, see --token-file" }
        self = Self.refusals.contains(status) ? .refused(reason) : .undelivered(reason)
    }

    /// The result of an error without a response. `place` is the service for people.
    init(_ error: HTTPSessionError, at place: String) { self = .undelivered("\(place): \(TransferProblem(error).message)") }

    /// The document of the service's errors.
    private struct Problem: Decodable { var detail: String }

    private static func detail(_ body: Data) -> String? {
        guard let problem = try? JSONDecoder().decode(Problem.self, from: body), !problem.detail.isEmpty else { return nil }
        return String(problem.detail.prefix(200))
    }
}
