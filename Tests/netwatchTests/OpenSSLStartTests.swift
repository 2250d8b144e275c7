import Expectations
import NetworkLab
import Testing

/// The initialization of OpenSSL by a monitor. The dynamic linker reports the first call of each function (ld.so(8), LD_DEBUG): it
/// binds the symbols of a program at their first call.
@Suite(.requiresNamespaces, .timeLimit(.minutes(5))) struct OpenSSLStartTests {
    /// The functions of OpenSSL that the program calls while it monitors the targets for a second.
    private func calls(monitoring targets: [String], on host: LabHost) throws -> [String] {
        let program = try Program(
            [try Programs.netwatch, "watch", "-v", "--for", "1s", "--interval", "100ms"] + targets, on: host,
            environment: ["LD_DEBUG": "bindings", "LD_BIND_NOW": nil], output: .file)
        try expectEqual(program.wait(), 0, "\(program.output)")
        #expect(targets.allSatisfy { program.output.contains($0) }, "\(program.output)")
        // "binding file …/netwatch [0] to …/libcrypto.so.3 [0]: normal symbol `OPENSSL_init_crypto' [OPENSSL_3.0.0]"
        let bindings = program.standardError.split(separator: "\n").filter { $0.contains("/netwatch [0] to ") }
        #expect(!bindings.isEmpty, "the linker has reported nothing")
        return bindings.compactMap { line in
            guard line.contains("/libcrypto.so") || line.contains("/libssl.so") else { return nil }
            return line.split(separator: "`").last.map { String($0.prefix { $0 != "'" }) }
        }
    }

    @Test func `a monitor of TCP and http targets never initializes OpenSSL, and one of a tls target does`() throws {
        let host = try Lab().host(loopback: true)
        let server = try host.serve()
        let targets = ["127.0.0.1:\(server.port)", "[::1]:\(server.port)", "localhost:\(server.port)", "127.0.0.1:1"]
        try expectEqual(calls(monitoring: targets, on: host), [])
        try expectEqual(calls(monitoring: targets + ["http://127.0.0.1:\(server.port)"], on: host), [])
        let secure = try calls(monitoring: targets + ["tls://127.0.0.1:\(server.port)"], on: host)
        #expect(secure.contains("OPENSSL_init_crypto"), "\(secure)")
    }
}
