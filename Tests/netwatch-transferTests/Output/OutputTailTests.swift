import Expectations
import Testing

@testable import netwatch_transfer

/// The end of a job's output, which the service keeps.
@Suite struct OutputTailTests {
    private func tail(_ pieces: [UInt8]...) -> OutputTail {
        var tail = OutputTail()
        for piece in pieces { tail.append(piece) }
        return tail
    }

    @Test func `a short output is kept`() {
        expectEqual(OutputTail().text(), "")
        expectEqual(tail(Array("a\n".utf8), Array("b".utf8)).text(), "a\nb")
    }

    @Test(arguments: [1, 7, 4_096, 65_536, 200_000]) func `the last 10 KiB are kept, however they arrive`(size: Int) {
        let bytes = (0..<200_000).map { UInt8(ascii: "a") + UInt8($0 % 26) }
        var tail = OutputTail()
        for start in stride(from: 0, to: bytes.count, by: size) { tail.append(bytes[start..<min(start + size, bytes.count)]) }
        #expect(Array(tail.text().utf8) == bytes.suffix(10_240))
    }

    @Test(arguments: ["é", "€", "😀"]) func `a cut inside of a character begins with the next one`(character: String) {
        for lead in 0..<4 {
            let end = String(repeating: "a", count: lead)
            let kept = tail(Array((String(repeating: character, count: 10_000) + end).utf8)).text()
            #expect(kept.utf8.count <= OutputTail.limit && kept.utf8.count > OutputTail.limit - 4)
            #expect(kept.hasSuffix(end) && kept.dropLast(lead).allSatisfy { String($0) == character }, "\(lead)")
        }
    }

    @Test func `an output that begins with an invalid byte keeps it as a replacement`() {
        expectEqual(tail([0x80, 0x41]).text(), "\u{FFFD}A")
        expectEqual(tail([0xFF], [0xC3]).text(), "\u{FFFD}\u{FFFD}")
    }

    @Test func `invalid bytes become replacements within the limit`() {
        let kept = tail([UInt8](repeating: 0xFF, count: 50_000)).text()
        #expect(kept.utf8.count <= OutputTail.limit && kept.utf8.count > OutputTail.limit - 3)
        #expect(kept.unicodeScalars.allSatisfy { $0 == "\u{FFFD}" })
    }

    @Test func `a character that arrives in two pieces is one`() {
        expectEqual(tail([0xC3], [0xA9]).text(), "é")
    }

    @Test func `a note is a line of its own, within the limit`() {
        expectEqual(tail(Array("a".utf8)).text(note: "ended"), "a\nended\n")
        expectEqual(tail(Array("a\n".utf8)).text(note: "ended"), "a\nended\n")
        expectEqual(tail().text(note: "ended"), "ended\n")
        let long = tail([UInt8](repeating: 0x61, count: 20_000)).text(note: "ended")
        #expect(long.utf8.count == OutputTail.limit && long.hasSuffix("a\nended\n"))
    }
}
