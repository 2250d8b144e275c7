import Expectations
import Foundation
import HTTPSession
import Testing

@testable import HTTPSessionJournal

private let now: Int64 = 1_000
private let complete = FileIdentity(inode: 7, size: 100, modified: 5)
private let other = FileIdentity(inode: 8, size: 100, modified: 5)
private let response = FinalResponse(statusCode: 200, url: URL(fileURLWithPath: "/"), body: Data())

private func download(_ state: TaskLifecycle.State = .waiting, refusesExistingFile: Bool = true) -> TaskLifecycle {
    TaskLifecycle(
        .init(isDownload: true, refusesExistingFile: refusesExistingFile, isRepeatable: true, expires: 2_000), state)
}

private func upload(_ state: TaskLifecycle.State = .waiting, isRepeatable: Bool = true) -> TaskLifecycle {
    TaskLifecycle(.init(isDownload: false, isRepeatable: isRepeatable, expires: 2_000), state)
}

struct TaskLifecycleTests {
    @Test func `a download arrives, is placed, and ends with one event`() {
        var task = download()
        expectEqual(task.handle(.reattached(.init()), now: now), [.transfer])
        expectEqual(task.handle(.transferred(response, hiddenFile: complete), now: now), [.write, .place])
        expectEqual(task.state, .arrived(complete, response))
        expectEqual(task.handle(.placed, now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.finished(response)))
        expectEqual(task.handle(.reattached(.init(destination: complete)), now: now), [.clean, .deliver])
        expectEqual(task.handle(.acknowledge, now: now), [.clean, .remove])
    }

    @Test func `a complete hidden file of a killed process is not downloaded again`() {
        var task = download()
        expectEqual(task.handle(.reattached(.init(hiddenFile: complete)), now: now), [.write, .place])
        expectEqual(task.state, .arrived(complete, nil))
    }

    @Test func `a file that a killed process has placed is recognized by its inode`() {
        var task = download(.arrived(complete, response))
        expectEqual(task.handle(.reattached(.init(destination: complete)), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.finished(response)))
        task = download(.arrived(complete, response))
        expectEqual(task.handle(.reattached(.init(hiddenFile: complete, destination: complete)), now: now), [.place])
    }

    @Test func `a hidden file that another program has removed is downloaded again`() {
        var task = download(.arrived(complete, response))
        expectEqual(task.handle(.reattached(.init()), now: now), [.write, .transfer])
        expectEqual(task.state, .waiting)
        task = download(.arrived(complete, response))
        expectEqual(task.handle(.reattached(.init(destination: other)), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.failed(.fileExists)))
        task = download(.arrived(complete, response), refusesExistingFile: false)
        expectEqual(task.handle(.reattached(.init(destination: other)), now: now), [.write, .transfer])
    }

    @Test func `an existing destination fails the task before its transfer or at the placement`() {
        var task = download()
        expectEqual(task.handle(.reattached(.init(destination: other)), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.failed(.fileExists)))
        task = download(.arrived(complete, response))
        expectEqual(task.handle(.placementFailed(.fileExists), now: now), [.write, .clean, .deliver])
    }

    @Test func `a request that may have been carried out is not repeated`() {
        var task = upload(isRepeatable: false)
        expectEqual(task.handle(.reattached(.init()), now: now), [.transfer])
        expectEqual(task.state, .waiting)
        expectEqual(task.handle(.requestWillBeSent, now: now), [.write])
        expectEqual(task.state, .started)
        expectEqual(task.handle(.requestWillBeSent, now: now), [])
        expectEqual(task.handle(.reattached(.init()), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.interrupted))
        task = upload(.started, isRepeatable: false)
        expectEqual(task.handle(.reattached(.init(hasUploadLocation: true)), now: now), [.transfer])
        expectEqual(task.handle(.transferred(response, hiddenFile: nil), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.finished(response)))
        // A download by POST is not repeated either, unless its hidden file exists.
        let order = TaskLifecycle.Terms(isDownload: true, isRepeatable: false, expires: 2_000)
        task = TaskLifecycle(order, .waiting)
        expectEqual(task.handle(.reattached(.init()), now: now), [.transfer])
        task = TaskLifecycle(order, .started)
        expectEqual(task.handle(.reattached(.init()), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.interrupted))
        task = TaskLifecycle(order, .arrived(complete, response))
        expectEqual(task.handle(.reattached(.init()), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.interrupted))
    }

    @Test func `a request that was not sent is sent by the next process`() {
        var task = upload(isRepeatable: false)
        expectEqual(task.handle(.reattached(.init()), now: now), [.transfer])
        expectEqual(task.handle(.requestWasNotSent, now: now), [])
        expectEqual(task.handle(.requestWillBeSent, now: now), [.write])
        expectEqual(task.handle(.requestWasNotSent, now: now), [.write])
        expectEqual(task.state, .waiting)
        expectEqual(task.handle(.reattached(.init()), now: now), [.transfer])
        // A repeatable request is not recorded.
        task = upload()
        expectEqual(task.handle(.requestWillBeSent, now: now), [])
        expectEqual(task.state, .waiting)
    }

    @Test func `a task does not start after its expiry, and a timeout after its expiry ends it as expired`() {
        var task = download()
        expectEqual(task.handle(.reattached(.init()), now: 2_000), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.expired))
        task = download()
        expectEqual(task.handle(.transferFailed(Failure(.timedOut, "")), now: 2_000), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.expired))
        task = download()
        _ = task.handle(.transferFailed(Failure(.timedOut, "")), now: now)
        expectEqual(task.state, .ended(.failed(Failure(.timedOut, ""))))
        // The expiry does not apply to a complete file.
        task = download()
        expectEqual(task.handle(.reattached(.init(hiddenFile: complete)), now: 3_000), [.write, .place])
    }

    @Test func `a file that has changed is not uploaded`() {
        var task = upload()
        expectEqual(task.handle(.reattached(.init(isBodyUnchanged: false)), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.failed(.fileChanged)))
    }

    @Test func `a canceled download stays canceled, and a completed upload ends as finished`() {
        var task = download()
        expectEqual(task.handle(.cancel, now: now), [.write, .stop])
        expectEqual(task.handle(.cancel, now: now), [])
        var killed = task
        expectEqual(killed.handle(.reattached(.init(hiddenFile: complete)), now: now), [.write, .clean, .deliver])
        expectEqual(killed.state, .ended(.cancelled))
        expectEqual(task.handle(.transferred(response, hiddenFile: complete), now: now), [.write, .clean, .deliver])
        expectEqual(task.state, .ended(.cancelled))
        var sent = upload(.cancelling)
        _ = sent.handle(.transferred(response, hiddenFile: nil), now: now)
        expectEqual(sent.state, .ended(.finished(response)))
        var late = download(.ended(.finished(nil)))
        expectEqual(late.handle(.cancel, now: now), [])
    }

    @Test func `an acknowledgement before the end has no effect, and a task ends once`() {
        var task = download()
        expectEqual(task.handle(.acknowledge, now: now), [])
        task = download(.ended(.expired))
        expectEqual(task.handle(.transferred(response, hiddenFile: complete), now: now), [])
        expectEqual(task.handle(.transferFailed(.fileGone), now: now), [])
        expectEqual(task.handle(.placed, now: now), [])
        expectEqual(task.state, .ended(.expired))
    }
}
