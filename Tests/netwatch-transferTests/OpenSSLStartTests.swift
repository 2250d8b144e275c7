import HTTPSessionTestKit
import NetworkLab
import Testing

/// When the program initializes OpenSSL. The dynamic linker tells of the first call of each function (ld.so(8), LD_DEBUG): symbols of a
/// program are bound as they are called, those of Debian's libraries when they are loaded.
@Suite(.timeLimit(.minutes(5))) struct OpenSSLStartTests {
    private func initializes(_ program: Program) throws -> Bool {
        #expect(try program.wait() == 0)
        let lines = program.standardError.split(separator: "\n").filter { $0.contains("/netwatch-transfer [0] to ") }
        // The linker was asked.
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
