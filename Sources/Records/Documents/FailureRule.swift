import Console
import FoundationEssentials
package import Reachability

/// The rule by which a server that answers counts as failed, for the exit code.
package struct FailureRule: Hashable, Sendable {
    /// A cause that counts as a failure.
    package struct Pattern: Hashable, Sendable {
        /// The layer of the cause; `nil` for each layer that has the code.
        package var layer: Cause.Layer?
        package var code: Cause.Code

        func matches(_ cause: Cause) -> Bool { cause.code == code && layer.map { $0 == cause.layer } ?? true }
    }

    /// Whether a degraded server counts as failed.
    package var isStrict = false
    /// The causes for which a server counts as failed, even if it is only degraded.
    package var patterns: [Pattern] = []

    /// Creates the usual rule: a degraded server is up.
    package init() {}

    /// Adds the causes of a list: codes with commas between them, as in `certificate-expiring,quality/loss`.
    ///
    /// - Throws: the reason why the list is not valid, in one line.
    package mutating func add(_ list: String) throws(ParseError) {
        for text in list.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let name = parts.last, !name.isEmpty else {
                throw ParseError(description: "write codes of causes, as in certificate-expiring,quality/loss")
            }
            let layer = parts.count == 2 ? Cause.Layer(rawValue: parts[0]) : nil
            if let layer, !Cause.Layer.allCases.contains(layer) {
                throw ParseError(unknown: "layer", layer.rawValue, Cause.Layer.allCases.map(\.rawValue))
            }
            let code = Cause.Code(rawValue: name)
            guard Cause.Code.allCases.contains(code) else {
                throw ParseError(unknown: "code", name, Cause.Code.allCases.map(\.rawValue))
            }
            // No cause would ever match, and the check would never fail.
            if let layer, !code.layers.contains(layer) {
                let causes = code.layers.map { "\($0)/\(code)" }.joined(separator: " or ")
                throw ParseError(description: "no cause is '\(layer)/\(code)'; write \(causes)")
            }
            patterns.append(Pattern(layer: layer, code: code))
        }
    }

    /// The reason why a list is not valid.
    package struct ParseError: Error, Hashable, CustomStringConvertible {
        package let description: String

        fileprivate init(description: String) { self.description = description }

        fileprivate init(unknown kind: String, _ name: String, _ known: [String]) {
            let near = NearestKey.list(name, among: known)
            description =
                "'\(TextStyle.printable(name))' is no \(kind) of a cause; "
                + (near.isEmpty
                    ? "docs/command-line.md lists them"
                    : "near it \(near.count == 1 ? "is" : "are") \(near.joined(separator: ", "))")
        }
    }

    /// Returns the result of one server.
    package func verdict(_ state: StatusName, _ cause: Cause?) -> StatusDocument.Verdict {
        if isStrict, state == .degraded { return .doesNotHold }
        if let cause, names(cause) { return .doesNotHold }
        return StatusDocument.Verdict(state)
    }

    /// Returns whether a server with this cause counts as failed.
    package func names(_ cause: Cause) -> Bool { patterns.contains { $0.matches(cause) } }

    package func verdict(_ update: ServerUpdate) -> StatusDocument.Verdict { verdict(update.statusName, update.cause) }
}
