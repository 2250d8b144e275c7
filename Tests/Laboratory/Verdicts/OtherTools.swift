import FaultLaboratory
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

    /// Asks all programs at once. A tls target is an https URL for curl.
    static func ask(_ network: FaultNetwork, _ fault: Fault) throws -> OtherTools {
        let target = fault.targets[0].replacing(#/^tls:/#, with: "https:")
        let curl = hasCurl ? try startCurl(network, target, fault.options) : nil
        let netcat = hasNetcat ? try startNetcat(network, target) : nil
        let blackbox = hasBlackbox ? try Blackbox(network) : nil
        return try OtherTools(answers: [
            curl.map { try answer(ofCurl: $0, isLevel: target.contains("://")) } ?? "-",
            netcat.map(answer(ofNetcat:)) ?? "-",
            blackbox?.ask(network, fault.targets[0]) ?? "-",
        ])
    }

    private static func startCurl(_ network: FaultNetwork, _ target: String, _ options: [String]) throws -> Program {
        let url = target.contains("://") ? target : "http://\(target)/"
        let names = ["--cafile": "--cacert", "--crlfile": "--crlfile"]
        let trust = zip(options, options.dropFirst()).flatMap { name, file in names[name].map { [$0, file] } ?? [] }
        return try network.start(
            ["curl", "-sS", "-o", "/dev/null", "-m", "5", "-w", "%{time_connect} %{http_code}"] + trust + [url],
            output: .file)
    }

    private static func answer(ofCurl program: Program, isLevel: Bool) throws -> String {
        let code = try program.wait(within: .seconds(30))
        let values = program.output.split(separator: " ")
        if isLevel, code == 0 { return "answered \(values.last ?? "")" }
        // The server accepts and does not answer, so that curl times out after it has connected.
        if !isLevel, let time = values.first.flatMap({ Double($0) }), time > 0 { return "connects" }
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
        let target = target.replacing(#/^[a-z]+:\/\//#, with: "")
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
        let hasAuthority = FileManager.default.fileExists(atPath: "\(network.etc.path)/laboratory-root.pem")
        let modules = """
            modules:
              tcp:
                prober: tcp
                timeout: 5s
              tls:
                prober: tcp
                timeout: 5s
                tcp:
                  tls: true
                  tls_config: {\(hasAuthority ? "ca_file: /etc/laboratory-root.pem" : "")}
              http:
                prober: http
                timeout: 5s

            """
        try modules.write(toFile: file, atomically: true, encoding: .utf8)
        program = try network.start(
            [
                "sh", "-c", "exec \"$@\" 2>&1", "sh", "prometheus-blackbox-exporter", "--config.file=/etc/blackbox.yml",
                "--web.listen-address=127.0.0.1:9115",
            ])
        _ = try program.nextLine(within: .seconds(30)) { $0.contains("Listening on") || $0.contains("TLS is disabled") }
    }

    func ask(_ network: FaultNetwork, _ target: String) throws -> String {
        let scheme = target.firstRange(of: "://").map { String(target[..<$0.lowerBound]) } ?? "tcp"
        // Its TCP prober takes no scheme, and needs a port.
        var place = scheme == "tls" ? String(target.dropFirst(6)) : target
        if scheme == "tls", !place.contains(":") { place += ":443" }
        let curl = try network.start(
            [
                "curl", "-sS", "-m", "10", "--retry", "5", "--retry-connrefused", "--retry-max-time", "15", "-G",
                "--data-urlencode", "target=\(place)",
                "http://127.0.0.1:9115/probe?module=\(scheme)&debug=true",
            ], output: .file)
        // A fault of this machine itself also cuts off the exporter.
        guard try curl.wait(within: .seconds(60)) == 0 else { return "cannot be asked" }
        if curl.output.contains("\nprobe_success 1") { return "success" }
        let messages = curl.output.matches(of: #/err="([^"]*)"/#).map(\.1)
        return "fails: \(messages.last.map(String.init) ?? "no message")"
    }
}
