import Expectations
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The initialization of OpenSSL by the program. The dynamic linker reports the first call of each function (ld.so(8),
/// LD_DEBUG): it binds the symbols of a program at their first call, those of Debian's libraries at their loading.
@Suite(.timeLimit(.minutes(5))) struct OpenSSLStartTests {
    private func initializes(_ program: Program) throws -> Bool {
        try expectEqual(program.wait(), 0)
        let lines = program.standardError.split(separator: "\n").filter { $0.contains("/netwatch-transfer [0] to ") }
        // The linker has reported bindings.
        #expect(!lines.isEmpty)
        return lines.contains { $0.contains("`OPENSSL_init_crypto'") }
    }

    @Test func `a program without a session does not initialize OpenSSL`() throws {
        let folder = try ProgramFolder()
        let server = try TestServer { _ in StubResponse(body: "x") }
        let environment: [String: String?] = ["LD_DEBUG": "bindings", "LD_BIND_NOW": nil]
        #expect(!(try initializes(folder.get("--help", environment: environment))))
        #expect(try initializes(folder.get("-q", server.origin + "/file", environment: environment)))
    }
}
