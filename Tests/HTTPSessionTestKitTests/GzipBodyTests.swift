import Expectations
import FoundationEssentials
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// Bodies as gzip(1) decompresses them.
private func inflated(_ body: StubBody) throws -> (bytes: [UInt8], code: Int32) {
    let (text, _) = try RawClient.exchangeBytes(StubResponse(body: body))
    let folder = try ScratchDirectory()
    try Data(text).write(to: URL(filePath: folder.file("a.gz")))
    let program = try Program(["gzip", "-dkf", folder.file("a.gz")])
    let code = try program.wait()
    // FoundationEssentials leaks a buffer for each empty file that it reads.
    let file = open(folder.file("a"), O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = read(file, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
    return (bytes, code)
}

@Suite(.timeLimit(.minutes(20)))
struct GzipBodyTests {
    @Test(arguments: [0, 1, 65535, 65536, 200_000])
    func `a stored member holds its bytes`(_ count: Int) throws {
        let bytes = StubBody.patternBytes(from: 0, count: count)
        let result = try inflated(.gzip(bytes))
        #expect(result.code == 0 && result.bytes == bytes)
    }

    @Test(arguments: [1, 2, 257, 258, 259, 260, 1032, 1033, 1291, 1292, 100_000, 10_000_000] as [Int64])
    func `a bomb is a valid member of zeros`(_ count: Int64) throws {
        let result = try inflated(.gzipBomb(inflatedBytes: count))
        expectEqual(result.code, 0)
        #expect(result.bytes.count == Int(count) && result.bytes.allSatisfy { $0 == 0 })
    }

    @Test func `a gzip bomb is a thousandth of its decompressed size`() {
        #expect(StubBody.gzipBomb(inflatedBytes: 1 << 40).count < 1 << 30 + 1 << 24)
        expectEqual(StubBody.gzipBomb(inflatedBytes: 1 << 40).segments.count, 3)
    }

    @Test(arguments: StubBody.GzipFault.allCases)
    func `a bad member is refused`(_ fault: StubBody.GzipFault) throws {
        #expect(try inflated(.badGzip("hello hello".utf8, fault)).code != 0)
    }
}
