import Foundation
import NetworkLab

/// The answers of other programs about a target during a fault, as far as they are installed.
struct OtherTools: Sendable {
    static let names = ["curl", "nc -z", "blackbox"]
    /// The answers in the order of ``names``.
    var answers: [String]

    private static let hasCurl = Programs.isInstalled("curl")
    private static let hasNetcat = Programs.isInstalled("nc")
    private static let hasBlackbox = Programs.isInstalled("prometheus-blackbox-exporter") && hasCurl

    /// One line for each program that is not installed.
    static var missing: [String] {
        [
            (hasCurl, "curl"), (hasNetcat, "nc (netcat-openbsd)"), (hasBlackbox, "prometheus-blackbox-exporter (with curl)"),
        ].filter { !$0.0 }.map { "\($0.1) is not installed: its column has no answers" }
    }

    /// Asks all programs at once.
    static func ask(_ network: FaultNetwork, _ target: String) throws -> OtherTools {
        let curl = hasCurl ? try startCurl(network, target) : nil
        let netcat = hasNetcat ? try startNetcat(network, target) : nil
        let blackbox = hasBlackbox ? try Blackbox(network) : nil
        return try OtherTools(answers: [
            curl.map(answer(ofCurl:)) ?? "-", netcat.map(answer(ofNetcat:)) ?? "-", blackbox?.ask(network, target) ?? "-",
        ])
    }

    private static func startCurl(_ network: FaultNetwork, _ target: String) throws -> Program {
        let url = target.contains("://") ? target : "http://\(target)/"
        return try network.start(
            ["curl", "-sS", "-o", "/dev/null", "-m", "5", "-w", "%{time_connect}", url], output: .file)
    }

    private static func answer(ofCurl program: Program) throws -> String {
        let code = try program.wait(within: .seconds(30))
        // The server accepts and does not answer, so that curl times out after it has connected.
        if let time = Double(program.output), time > 0 { return "connects" }
        let text = program.standardError.split(separator: "\n").last ?? "no message"
        return "\(code): "
            + text.replacing(#/^curl: \(\d+\) /#, with: "")
            .replacing(#/Failed to connect to .* port \d+ (after \d+ ms): Couldn't connect to server/#) {
                "no connection \($0.1)"
            }
            .replacing(#/ after \d+ milliseconds/#, with: "")
    }

    private static func startNetcat(_ network: FaultNetwork, _ target: String) throws -> Program {
        let (host, port) = split(target)
        return try network.start(["nc", "-z", "-v", "-w", "5", host, port], output: .file)
    }

    private static func answer(ofNetcat program: Program) throws -> String {
        if try program.wait(within: .seconds(30)) == 0 { return "connects" }
        let text = program.standardError.split(separator: "\n").last ?? "no message"
        return String(text.replacing(#/^nc: (connect to .* port \d+ \(tcp\) )?/#, with: ""))
    }

    private static func split(_ target: String) -> (String, String) {
        let end = target.lastIndex(of: ":") ?? target.endIndex
        let host = target[..<end].filter { $0 != "[" && $0 != "]" }
        return (host, String(target[end...].dropFirst()))
    }
}

/// A running prometheus-blackbox-exporter on the client.
private struct Blackbox {
    private let program: Program
    private let scratch: ScratchDirectory

    init(_ network: FaultNetwork) throws {
        scratch = try ScratchDirectory()
        let file = "\(network.etc.path)/blackbox.yml"
        let modules = "modules:\n  tcp:\n    prober: tcp\n    timeout: 5s\n"
        try modules.write(toFile: file, atomically: true, encoding: .utf8)
        program = try network.start(
            [
                "sh", "-c", "exec \"$@\" 2>&1", "sh", "prometheus-blackbox-exporter", "--config.file=/etc/blackbox.yml",
                "--web.listen-address=127.0.0.1:9115",
            ])
        _ = try program.nextLine(within: .seconds(30)) { $0.contains("Listening on") || $0.contains("TLS is disabled") }
    }

    func ask(_ network: FaultNetwork, _ target: String) throws -> String {
        let curl = try network.start(
            [
                "curl", "-sS", "-m", "10", "--retry", "5", "--retry-connrefused", "-G", "--data-urlencode", "target=\(target)",
                "http://127.0.0.1:9115/probe?module=tcp&debug=true",
            ], output: .file)
        guard try curl.wait(within: .seconds(60)) == 0 else { return curl.ending }
        if curl.output.contains("\nprobe_success 1") { return "success" }
        let messages = curl.output.matches(of: #/err="([^"]*)"/#).map(\.1)
        return "fails: \(messages.last.map(String.init) ?? "no message")"
    }
}
