import Expectations
import Foundation
import Glibc
import HTTPSession
import HTTPTypes
import Testing

@Suite struct MultipartFilesTests {
    /// Runs `body` with a directory, and then removes the directory.
    func withDirectory(_ body: (URL) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "multipart-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory)
    }

    func request(_ form: MultipartForm) throws -> TransferRequest {
        let request = TransferRequest(url: try #require(URL(string: "https://example.com/")), method: .post)
        return try HTTPRequestSerializer(headerFields: [:]).multipartRequest(request, form: form)
    }

    func spill(_ form: MultipartForm, to file: URL) async throws -> TransferRequest {
        try await HTTPRequestSerializer(headerFields: [:]).requestByWritingForm(of: request(form), to: file)
    }

    /// The code of the error that `body` throws.
    func code(of body: () async throws -> Void) async -> HTTPSessionError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? HTTPSessionError)?.code
        }
    }

    @Test func `a file's length is read when it is appended to a multipart form`() async throws {
        try await withDirectory { directory in
            let file = directory.appending(path: "a b.json")
            try Data("{}".utf8).write(to: file)
            var form = try MultipartForm(boundary: "B")
            try form.appendPart(fileURL: file, name: "f")
            let header =
                "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a b.json\"\r\nContent-Type: application/json\r\n\r\n"
            expectEqual(form.contentLength, Int64(header.utf8.count + 2 + "\r\n--B--\r\n".utf8.count))
        }
    }

    @Test func `a URL without a readable file is refused by a multipart form`() async throws {
        try await withDirectory { directory in
            var form = MultipartForm()
            let web = try #require(URL(string: "https://example.com/a"))
            expectEqual(HTTPSessionError.thrown { try form.appendPart(fileURL: web, name: "f") }?.code, .invalidRequest)
            expectEqual(HTTPSessionError.thrown { try form.appendPart(fileURL: directory, name: "f") }?.code, .invalidRequest)
            let missing = HTTPSessionError.thrown { try form.appendPart(fileURL: directory.appending(path: "no"), name: "f") }
            expectEqual(missing?.code, .cannotReadFile)
            expectEqual(missing?.context.systemError, 2)
            #expect(form.isEmpty)
        }
    }

    @Test func `a multipart form written to a file has the same bytes as the form when sent`() async throws {
        try await withDirectory { directory in
            let file = directory.appending(path: "a.bin")
            try Data(repeating: 7, count: 1_000_000).write(to: file)
            var form = try MultipartForm(boundary: "B")
            try form.appendPart(form: Data("value".utf8), name: "field")
            try form.appendPart(fileURL: file, name: "f")
            let stream: BodyStreamFactory = {
                AsyncThrowingStream { continuation in
                    for chunk in ["one", "two"] { continuation.yield(Data(chunk.utf8)) }
                    continuation.finish()
                }
            }
            try form.appendPart(stream: stream, length: 6, name: "s", fileName: "s")
            let target = directory.appending(path: "form")
            // The form is written twice, because every part can be read again.
            for _ in 1...2 {
                let spilled = try await spill(form, to: target)
                guard case .file(let written) = spilled.body else {
                    Issue.record("no file")
                    return
                }
                let bytes = try Data(contentsOf: written)
                expectEqual(Int64(bytes.count), form.contentLength)
                #expect(
                    bytes.starts(with: Data("--B\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n--B".utf8)))
                expectEqual(bytes.suffix(15), Data("onetwo\r\n--B--\r\n".utf8))
                expectEqual(spilled.headerFields[.contentType], "multipart/form-data; boundary=B")
            }
            try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["a.bin", "form"])
        }
    }

    @Test func `a multipart form with a changed file or a failing stream leaves no file when it is written`() async throws {
        try await withDirectory { directory in
            let target = directory.appending(path: "form")
            for (size, expected) in [(11, .fileChanged), (9, .fileChanged), (nil, .cannotReadFile)]
                as [(Int?, HTTPSessionError.Code)]
            {
                let file = directory.appending(path: "part")
                try Data(count: 10).write(to: file)
                var form = MultipartForm()
                try form.appendPart(fileURL: file, name: "f")
                if let size {
                    try Data(count: size).write(to: file)
                } else {
                    try FileManager.default.removeItem(at: file)
                }
                let code = await code { _ = try await spill(form, to: target) }
                expectEqual(code, expected)
            }
            for (length, failure, expected) in [(5, nil, .fileChanged), (nil, Refusal(), .cannotReadFile)]
                as [(Int64?, Refusal?, HTTPSessionError.Code)]
            {
                var form = MultipartForm()
                let stream: BodyStreamFactory = {
                    AsyncThrowingStream { continuation in
                        continuation.yield(Data("1234".utf8))
                        continuation.finish(throwing: failure)
                    }
                }
                try form.appendPart(stream: stream, length: length, name: "s", fileName: "s")
                let code = await code { _ = try await spill(form, to: target) }
                expectEqual(code, expected)
            }
            try expectEmpty(FileManager.default.contentsOfDirectory(atPath: directory.path))
        }
    }

    @Test func `writing a multipart form to a missing directory fails as cannotWriteFile`() async throws {
        var form = MultipartForm()
        try form.appendPart(form: Data("value".utf8), name: "field")
        for target in ["/nonexistent/form", "/proc/form"] {
            let code = await code { _ = try await spill(form, to: URL(filePath: target)) }
            expectEqual(code, .cannotWriteFile)
        }
    }

    @Test func `a request without a multipart form is returned unchanged`() async throws {
        let request = TransferRequest(url: try #require(URL(string: "https://example.com/")), method: .post)
        let same = try await HTTPRequestSerializer(headerFields: [:]).requestByWritingForm(
            of: request, to: URL(filePath: "/nonexistent/x"))
        guard case .none = same.body else {
            Issue.record("a body")
            return
        }
    }

    @Test func `canceling stops writing a multipart form`() async throws {
        try await withDirectory { directory in
            var form = MultipartForm()
            let stream: BodyStreamFactory = {
                AsyncThrowingStream { Data(count: 1024) }
            }
            try form.appendPart(stream: stream, length: nil, name: "endless", fileName: "e")
            let request = try request(form)
            let target = directory.appending(path: "form")
            let task = Task {
                try await HTTPRequestSerializer(headerFields: [:]).requestByWritingForm(of: request, to: target)
            }
            task.cancel()
            let code = await code { _ = try await task.value }
            expectEqual(code, .cancelled)
            try expectEmpty(FileManager.default.contentsOfDirectory(atPath: directory.path))
        }
    }

    @Test func `writing a multipart form leaves other files in the directory unchanged`() async throws {
        try await withDirectory { directory in
            var form = MultipartForm()
            try form.appendPart(form: Data("value".utf8), name: "field")
            let manager = FileManager.default
            let (victim, precious) = (directory.appending(path: "victim"), Data("precious".utf8))
            try precious.write(to: victim)
            try precious.write(to: directory.appending(path: "a.part"))
            try manager.createSymbolicLink(at: directory.appending(path: "b.part"), withDestinationURL: victim)
            expectEqual(mkfifo(directory.appending(path: "c.part").path, 0o600), 0)
            let before = Set(try manager.contentsOfDirectory(atPath: directory.path))
            for name in ["a", "b", "c"] {
                _ = try await spill(form, to: directory.appending(path: name))
                try expectEqual(
                    manager.attributesOfItem(atPath: directory.appending(path: name).path)[.type] as? FileAttributeType,
                    .typeRegular)
            }
            try expectEqual(Data(contentsOf: victim), precious)
            try expectEqual(Data(contentsOf: directory.appending(path: "a.part")), precious)
            expectEqual(Set(try manager.contentsOfDirectory(atPath: directory.path)), before.union(["a", "b", "c"]))
        }
    }
}
