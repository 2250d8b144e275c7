import Foundation

/// Runs small programs against this toolchain's URLSession and a server that misbehaves, and prints what was seen of each claim as a
/// table in Markdown. Each claim has a process of its own, as some end it.
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

    /// The child: one line, verdict and what was seen, with a tab between.
    private static func runOne(_ name: String) {
        guard let claim = Claim.all.first(where: { $0.name == name }) else { return }
        let finding: Finding
        do { finding = try claim.check() } catch { finding = Finding(.undecided, "\(error)") }
        print("\(finding.verdict)\t\(finding.seen)")
        fflush(nil)
        // A session's threads may still be at work, and what they do at exit is no claim of ours.
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

    /// What the Swift runtime says, without the path of whoever built it; of an error that `try!` met, its innermost cause.
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
