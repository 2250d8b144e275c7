import Foundation
import FoundationNetworking
import HTTPSessionTestKit

extension Claim {
    static let downloads: [Claim] = [
        Claim(
            name: "download-no-directory", text: "A download whose temporary directory does not take files ends the process",
            source: "NativeProtocol.swift:145-147, 288, 369", endsProcess: true, environment: ["TMPDIR": "/proc/self"]
        ) {
            let exchange = try download(bytes: 100_000)
            return Finding(.refuted, "\(exchange.errorText), \(exchange.observer.seen.downloaded ?? 0) bytes handed over")
        },
        Claim(
            name: "download-full-disk", text: "A download to a full disk ends the process",
            source: "NativeProtocol.swift:145-147, 288, 369", endsProcess: true,
            // A disk of 64 KiB, in a mount namespace of the child's own.
            wrapper: [
                "unshare", "--map-root-user", "--mount", "sh", "-c",
                "mount -t tmpfs -o size=64k tmpfs /mnt && TMPDIR=/mnt exec \"$@\"", "sh",
            ]
        ) {
            let exchange = try download(bytes: 1_000_000)
            return Finding(.refuted, "\(exchange.errorText), \(exchange.observer.seen.downloaded ?? 0) bytes handed over")
        },
        Claim(
            name: "download-resume-data", text: "`cancel(byProducingResumeData:)` produces none",
            source: "URLSessionTask.swift:673-684"
        ) {
            let server = try TestServer { _ in
                StubResponse(fields: ["ETag": "\"1\"", "Accept-Ranges": "bytes"], body: .pattern(1_000_000)).slow(
                    bytesPerSecond: 100_000)
            }
            let observer = Observer()
            let session = URLSession(configuration: .ephemeral, delegate: observer, delegateQueue: nil)
            let task = session.downloadTask(with: server.url("/a"))
            task.resume()
            let limit = ContinuousClock.now + .seconds(10)
            while task.countOfBytesReceived == 0 && ContinuousClock.now < limit { usleep(20_000) }
            let end = DispatchSemaphore(value: 0)
            nonisolated(unsafe) var count: Int?  // written before the semaphore's signal, read after it
            task.cancel {
                count = $0?.count
                end.signal()
            }
            guard end.wait(timeout: .now() + 10) == .success else { return Finding(.undecided, "the handler was not called") }
            return Finding(count == nil, count.map { "\($0) bytes" } ?? "nil, after \(task.countOfBytesReceived) bytes")
        },
        Claim(
            name: "download-counts", text: "`countOfBytesReceived` of a data task stays 0", source: "NativeProtocol.swift:148"
        ) {
            let server = try TestServer { _ in StubResponse(body: .pattern(100_000)) }
            let observer = Observer()
            let session = URLSession(configuration: .ephemeral, delegate: observer, delegateQueue: nil)
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            _ = observer.end.wait(timeout: .now() + 20)
            return Finding(task.countOfBytesReceived == 0, "\(task.countOfBytesReceived) after \(observer.seen.data.count) bytes")
        },
    ]

    private static func download(bytes: Int64) throws -> Exchange {
        let server = try TestServer { _ in StubResponse(body: .pattern(bytes)) }
        return Exchange.download(URLRequest(url: server.url("/file")))
    }
}
