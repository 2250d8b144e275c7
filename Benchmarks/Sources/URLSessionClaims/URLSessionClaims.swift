import Foundation

/// Runs small programs against this toolchain's URLSession and a misbehaving server, and prints the result of each claim as a
/// table in Markdown. Each claim runs in a separate process, since some end it.
@main
enum URLSessionClaims {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        if let index = arguments.firstIndex(of: "--claim"), let name = arguments.dropFirst(index).first {
            return runOne(name)
        }
        let chosen = arguments.isEmpty ? Claim.all : Claim.all.filter { arguments.contains($0.name) }
        print("| claim | source | seen | verdict |\n|---|---|---|---|")
        for claim in chosen {
            let finding = runInChild(claim)
            print("| \(claim.text) | \(claim.source) | \(finding.seen) | \(finding.verdict) |")
            fflush(nil)
        }
    }

    /// Runs one claim in the child, and prints one line: the verdict and the observation, separated by a tab.
    private static func runOne(_ name: String) {
        guard let claim = Claim.all.first(where: { $0.name == name }) else { return }
        let finding: Finding
        do { finding = try claim.check() } catch { finding = Finding(.undecided, "\(error)") }
        print("\(finding.verdict)\t\(finding.seen)")
        fflush(nil)
        // A session's threads may still run, and a crash of theirs at exit is no result of the claim.
        _exit(0)
    }

    private static func runInChild(_ claim: Claim) -> Finding {
        let child = Process()
        let output = Pipe()
        let errors = Pipe()
        var environment = ProcessInfo.processInfo.environment
        for name in environment.keys where name.lowercased().hasSuffix("_proxy") { environment[name] = nil }
        environment["SWIFT_BACKTRACE"] = "enable=no"
        for (key, value) in claim.environment { environment[key] = value }
        child.environment = environment
        let command = claim.wrapper + [Bundle.main.executablePath ?? CommandLine.arguments[0], "--claim", claim.name]
        child.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        child.arguments = command
        child.standardOutput = output
        child.standardError = errors
        do { try child.run() } catch { return Finding(.undecided, "\(error)") }
        let identifier = child.processIdentifier
        let deadline = DispatchWorkItem { kill(identifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: deadline)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let words = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        child.waitUntilExit()
        deadline.cancel()
        if child.terminationReason == .uncaughtSignal {
            let signal = child.terminationStatus
            guard signal != SIGKILL else { return Finding(.undecided, "no end within 60 s") }
            return Finding(claim.endsProcess ? .confirmed : .worse, "the process ends by signal \(signal): \(reason(in: words))")
        }
        let parts = text.split(separator: "\n").last?.split(separator: "\t", maxSplits: 1).map(String.init) ?? []
        guard parts.count == 2, let verdict = Finding.Verdict(rawValue: parts[0]) else {
            return Finding(.undecided, "exit code \(child.terminationStatus): \(reason(in: words))")
        }
        return Finding(verdict, parts[1])
    }

    /// The Swift runtime's message without the path of its build. For an error that `try!` met, its innermost cause.
    private static func reason(in words: String) -> String {
        let lines = words.split(separator: "\n")
        let line = lines.first { $0.contains("Fatal error") } ?? lines.last ?? "no word"
        var short = line.range(of: "Fatal error").map { line[$0.lowerBound...] } ?? line
        if short.contains("try!"), let cause = short.range(of: "NSUnderlyingError=", options: .backwards) {
            short = "Fatal error: 'try!' met \(short[cause.upperBound...].prefix { $0 != "}" })"
        }
        return "`\(short.prefix(160).replacing("|", with: "\\|"))`"
    }
}
