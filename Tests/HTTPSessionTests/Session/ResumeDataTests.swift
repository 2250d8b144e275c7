import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// Downloads that continue from the resume data of an error.
@Suite(.timeLimit(.minutes(20))) struct ResumeDataTests: PartialFileSuite {
    let folder: ScratchDirectory
    let log = EventLog()

    init() throws { folder = try ScratchDirectory() }

    private func resumeData(_ source: CutFileServer) async throws -> Data {
        let task = try resumingSession().downloadTask(
            for: TransferRequest(url: source.server.url("/file")), to: place("file", .remove))
        let error = await failure(task)
        expectEqual(error?.code, .connectionLost)
        return try #require(error?.resumeData)
    }

    @Test func `an error's resume data continues the download in another session and at another destination`() async throws {
        let source = try CutFileServer()
        let data = try await resumeData(source)
        #expect(!String(decoding: data, as: UTF8.self).contains("/"))
        source.sendCompleteResponses()
        let response = try await resumingSession().downloadTask(withResumeData: data, to: place("elsewhere", .remove)).response
        expectEqual(response.metrics.bytesContinued, cut)
        try expectCompleteFile("elsewhere", besides: ["resume"])
        try expectEmpty(FileManager.default.contentsOfDirectory(atPath: folder.file("resume")))
        // Resume data cannot be used a second time.
        await expectEqual(
            failure(try resumingSession().downloadTask(withResumeData: data, to: place("again")))?.code, .cannotResume)
    }

    @Test func `resume data stays valid until the file is complete`() async throws {
        let source = try CutFileServer()
        let data = try await resumeData(source)
        let refusing = try TestServer { _ in StubResponse(503) }
        let again = try resumingSession().downloadTask(
            withResumeData: data, for: TransferRequest(url: refusing.url("/file")), to: place("file", .remove))
        let error = await failure(again)
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.resumeData, data)
        source.sendCompleteResponses()
        _ = try await resumingSession().downloadTask(withResumeData: data, to: place("file", .remove)).response
        try expectCompleteFile(besides: ["resume"])
    }

    @Test func `a canceled download has resume data`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)])
            )
            .field("ETag", "\"1\"")
        }
        let task = try resumingSession().downloadTask(for: TransferRequest(url: server.url()), to: place("file", .remove))
        await task.awaitProgress { $0.bytesReceived >= 700_000 }
        task.cancel()
        let error = await failure(task)
        expectEqual(error?.code, .cancelled)
        #expect(error?.resumeData != nil)
        gate.open()
    }

    @Test(arguments: [
        "", "x", "netwatch-resume-1:", "netwatch-resume-1:../../../../../../etc/passwd",
        "netwatch-resume-2:0123456789abcdef0123456789abcdef",
        "netwatch-resume-1:0123456789abcdef0123456789abcdef",
    ]) func `invalid resume data is an error, and with a request the download starts from the beginning`(_ text: String)
        async throws
    {
        let source = try CutFileServer()
        source.sendCompleteResponses()
        let session = try resumingSession()
        await expectEqual(
            failure(session.downloadTask(withResumeData: Data(text.utf8), to: place("file", .remove)))?.code,
            .cannotResume)
        let request = TransferRequest(url: source.server.url())
        _ = try await session.downloadTask(withResumeData: Data(text.utf8), for: request, to: place("file", .remove)).response
        try expectCompleteFile()
    }

    @Test func `resume data applies to a request whose URL has another signature`() async throws {
        let source = try CutFileServer()
        let data = try await resumeData(source)
        source.sendCompleteResponses()
        let request = TransferRequest(url: source.server.url("/file?signature=2"))
        let task = try resumingSession().downloadTask(withResumeData: data, for: request, to: place("file", .remove))
        try await expectEqual(task.response.metrics.bytesContinued, cut)
        try expectCompleteFile(besides: ["resume"])
    }

    @Test func `resume data whose partial file was deleted starts from the beginning`() async throws {
        let source = try CutFileServer()
        let data = try await resumeData(source)
        for name in folder.names where name.hasSuffix(".part") { try FileManager.default.removeItem(at: folder.url(name)) }
        source.sendCompleteResponses()
        try await expectEqual(
            resumingSession().downloadTask(withResumeData: data, to: place("file", .remove)).response.metrics
                .bytesContinued, 0)
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(size))
    }
}
