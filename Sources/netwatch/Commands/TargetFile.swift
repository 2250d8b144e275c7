import Console
import Reachability

/// The targets of `--targets FILE`: one a line. `#` begins a comment; empty lines are ignored.
enum TargetFile {
    /// The maximum number of targets in a file.
    static let limit = 1_000_000

    /// Reads the targets.
    ///
    /// - Parameters:
    ///   - path: the file; `-` for standard input.
    ///   - families: the families of addresses that are accepted.
    /// - Returns: the targets, in their order; at least one.
    /// - Throws: ``Failure`` with code 65 for a malformed line, an address of another family, a line of more than 16 MiB, more targets than ``limit``, or a file without
    ///   targets. The message names the line, if there is one. The code is 66 or 77 if the file cannot be opened, and 74 if it cannot be read.
    static func read(_ path: String, families: Set<IPAddress.Family> = [.v4, .v6]) throws -> [Endpoint] {
        let lines = try LineReader(path)
        let name = path == "-" ? "standard input" : path
        var endpoints: [Endpoint] = []
        var number = 0
        do {
            while let line = try lines.next() {
                number += 1
                guard let text = target(in: line) else { continue }
                guard endpoints.count < limit else {
                    throw Failure(ExitCode.badData, "\(name): line \(number): more than \(limit) targets")
                }
                let failure = { (reason: String) in
                    let shown = UserInformation.withoutPassword(text).prefix(100)
                    return Failure(ExitCode.badData, "\(name): line \(number): '\(shown)': \(reason)")
                }
                let endpoint: Endpoint
                do { endpoint = try Endpoint(text) } catch { throw failure(error.description) }
                if let problem = endpoint.exclusion(by: families) { throw failure(problem) }
                endpoints.append(endpoint)
            }
        } catch let damage as LineReader.DamageError {
            throw Failure(ExitCode.badData, "\(name): line \(damage.line): \(damage.why)")
        }
        guard !endpoints.isEmpty else { throw Failure(ExitCode.badData, "\(name): there is no target in it") }
        return endpoints
    }

    /// Returns the target in a line; `nil` for an empty line or a comment.
    static func target(in line: String) -> String? {
        let bytes = line.utf8.prefix { $0 != UInt8(ascii: "#") }
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r") }
        let trimmed = bytes.drop(while: isBlank)
        guard let last = trimmed.lastIndex(where: { !isBlank($0) }) else { return nil }
        return String(Substring(trimmed[...last]))
    }
}
