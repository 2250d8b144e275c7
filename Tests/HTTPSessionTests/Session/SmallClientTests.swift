import Expectations
import HTTPSessionTestKit
import NetworkLab
import Testing

/// A program that imports only HTTPSession and FoundationEssentials.
@Suite(.timeLimit(.minutes(5))) struct SmallClientTests {
    @Test func `a session loads neither Foundation nor ICU nor libxml2`() throws {
        // With this variable the dynamic linker lists the libraries and exits (ld.so(8)).
        let program = try Program(
            [Programs.built("small-client")], environment: ["LD_TRACE_LOADED_OBJECTS": "1"], output: .file)
        try expectEqual(program.wait(), 0)
        let names = program.output.split(separator: "\n").map { $0.drop(while: \.isWhitespace).prefix { $0 != " " && $0 != "." } }
        #expect(names.contains("libFoundationEssentials"))
        #expect(names.contains("libcurl"))
        let unwanted = ["libFoundation", "lib_FoundationICU", "libFoundationInternationalization", "libFoundationXML", "libxml2"]
        expectEqual(names.filter { unwanted.contains(String($0)) }, [])
    }

    @Test func `an international host name works without ICU`() throws {
        let server = try TestServer { request in StubResponse(body: "\(request["host"] ?? "")") }
        // libcurl itself resolves names below localhost (RFC 6761 section 6.3).
        let program = try Program([Programs.built("small-client"), "http://bücher.localhost:\(server.port)/ü"], output: .file)
        try expectEqual(program.wait(), 0, "\(program.standardError)")
        #expect(program.output.hasPrefix("http://xn--bcher-kva.localhost:\(server.port)/%C3%BC\nxn--bcher-kva.localhost"))
    }

    @Test func `text in a character set of the C library is decoded without ICU`() throws {
        let server = try TestServer { _ in
            StubResponse(
                fields: ["Content-Type": "text/plain; charset=koi8-r"],
                body: StubBody([.bytes([0xF0, 0xD2, 0xC9, 0xD7, 0xC5, 0xD4])]))
        }
        let program = try Program([Programs.built("small-client"), server.origin], output: .file)
        try expectEqual(program.wait(), 0, "\(program.standardError)")
        #expect(program.output.contains("\nПривет\n"))
    }
}
