import Expectations
import NetworkLab
import Reachability
import Testing

/// Watches one host with the library and the program, and expects the same paths from both.
///
/// A test makes a host, then alternates commands on it with expected paths. A record that keeps the line and adds an address or
/// changes a level may precede the expected one. Any other record is a failure.
final class Witness {
    let library: LibraryObserver
    let program: ProgramObserver
    private var lines: [String] = []
    private var history: [[String]] = [[], []]

    /// Starts both observers. Their first path has to be `line`.
    init(
        _ host: LabHost, by name: String? = nil, _ configure: (inout MonitorConfiguration) -> Void = { _ in },
        options: [String] = [], sees line: String
    ) throws {
        var configuration = MonitorConfiguration(namespace: NetworkNamespace(name ?? host.path))
        configure(&configuration)
        library = try LibraryObserver(configuration)
        program = try ProgramObserver(watching: name ?? host.path, options)
        for (number, observer) in observers.enumerated() {
            let first = try observer.nextPath()
            history[number].append("\(first.map(\.description) ?? "end")")
            guard first?.line == line else { throw failure(number, "first '\(line)'") }
        }
        lines = [line, line]
    }

    private var observers: [any Observer] { [library, program] }

    /// Expects `line` from both observers, with at least these reasons (separated by spaces). Records with the former line or
    /// with a line of `past` are skipped. Without a line the former one is expected.
    ///
    /// The kernel announces one change in several messages. If an observer runs between two of them, it publishes the change in several records, so
    /// the reasons of skipped records count too.
    func expect(
        _ line: String? = nil, reasons: String = "", past: Set<String> = [], _ check: (Seen) -> Void = { _ in }
    ) throws {
        let wanted = Set(reasons.split(separator: " ").map(String.init))
        for (number, observer) in observers.enumerated() {
            let expected = line ?? lines[number]
            var given: Set<String> = []
            while true {
                let seen: Seen?
                do { seen = try observer.nextPath() } catch {
                    history[number].append("\(error)")
                    throw failure(number, "'\(expected)' \(reasons)")
                }
                guard let seen else { throw failure(number, "'\(expected)' \(reasons) instead of the end") }
                history[number].append("\(seen)")
                given.formUnion(seen.reasons)
                if seen.line == expected, wanted.isSubset(of: given) {
                    lines[number] = seen.line
                    check(seen)
                    break
                }
                guard seen.line == lines[number] || seen.line == expected || past.contains(seen.line) else {
                    throw failure(number, "'\(expected)' \(reasons)")
                }
                lines[number] = seen.line
            }
        }
    }

    /// Expects `line` in the very next record of both observers, with exactly these reasons (separated by spaces).
    func expectNext(_ line: String? = nil, reasons: String, _ check: (Seen) -> Void = { _ in }) throws {
        let wanted = Set(reasons.split(separator: " ").map(String.init))
        for (number, observer) in observers.enumerated() {
            let expected = line ?? lines[number]
            guard let seen = try observer.nextPath() else { throw failure(number, "'\(expected)' instead of the end") }
            history[number].append("\(seen)")
            guard seen.line == expected, seen.reasons == wanted else { throw failure(number, "at once '\(expected)' \(reasons)") }
            lines[number] = seen.line
            check(seen)
        }
    }

    /// Expects the end of both observers. The program exits with this code and one line on standard error.
    func expectEnd(exitCode: Int32) throws {
        for (number, observer) in observers.enumerated() {
            while let seen = try observer.nextPath() { history[number].append("\(seen)") }
        }
        try expectEqual(program.program.wait(within: patience), exitCode)
        expectEqual(program.program.standardError.split(separator: "\n").count, 1, "\(program.program.standardError)")
    }

    private func failure(_ number: Int, _ expectation: String) -> LabError {
        LabError("\(observers[number].name): expected \(expectation)\npaths so far:\n" + history[number].joined(separator: "\n"))
    }
}
