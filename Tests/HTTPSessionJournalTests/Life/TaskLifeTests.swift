import Foundation
import HTTPSession
import Testing

@testable import HTTPSessionJournal

private let now: Int64 = 1_000
private let whole = FileMark(inode: 7, size: 100, modified: 5)
private let other = FileMark(inode: 8, size: 100, modified: 5)
private let answer = Answer(statusCode: 200, url: URL(fileURLWithPath: "/"), body: Data())

private func download(_ state: TaskLife.State = .waiting, refusesExistingFile: Bool = true) -> TaskLife {
    TaskLife(
        .init(isDownload: true, refusesExistingFile: refusesExistingFile, isRepeatable: true, expires: 2_000), state)
}

private func upload(_ state: TaskLife.State = .waiting, isRepeatable: Bool = true) -> TaskLife {
    TaskLife(.init(isDownload: false, isRepeatable: isRepeatable, expires: 2_000), state)
}

struct TaskLifeTests {
    @Test func `a download arrives, is placed, and ends with one event`() {
        var life = download()
        #expect(life.handle(.reattached(.init()), now: now) == [.transfer])
        #expect(life.handle(.transferred(answer, hidden: whole), now: now) == [.write, .place])
        #expect(life.state == .arrived(whole, answer))
        #expect(life.handle(.placed, now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.finished(answer)))
        #expect(life.handle(.reattached(.init(destination: whole)), now: now) == [.clean, .deliver])
        #expect(life.handle(.acknowledge, now: now) == [.clean, .remove])
    }

    @Test func `a file that is whole when its process is killed is not fetched again`() {
        var life = download()
        #expect(life.handle(.reattached(.init(hidden: whole)), now: now) == [.write, .place])
        #expect(life.state == .arrived(whole, nil))
    }

    @Test func `a file that has its name when its process is killed is known by its inode`() {
        var life = download(.arrived(whole, answer))
        #expect(life.handle(.reattached(.init(destination: whole)), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.finished(answer)))
        life = download(.arrived(whole, answer))
        #expect(life.handle(.reattached(.init(hidden: whole, destination: whole)), now: now) == [.place])
    }

    @Test func `a file that somebody has taken away is fetched again`() {
        var life = download(.arrived(whole, answer))
        #expect(life.handle(.reattached(.init()), now: now) == [.write, .transfer])
        #expect(life.state == .waiting)
        life = download(.arrived(whole, answer))
        #expect(life.handle(.reattached(.init(destination: other)), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.failed(.fileExists)))
        life = download(.arrived(whole, answer), refusesExistingFile: false)
        #expect(life.handle(.reattached(.init(destination: other)), now: now) == [.write, .transfer])
    }

    @Test func `a destination that is taken is told before anything is asked for, or when the file comes`() {
        var life = download()
        #expect(life.handle(.reattached(.init(destination: other)), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.failed(.fileExists)))
        life = download(.arrived(whole, answer))
        #expect(life.handle(.notPlaced(.fileExists), now: now) == [.write, .clean, .deliver])
    }

    @Test func `what may have been carried out is not sent again`() {
        var life = upload(isRepeatable: false)
        #expect(life.handle(.reattached(.init()), now: now) == [.transfer])
        #expect(life.state == .waiting)
        #expect(life.handle(.leaves, now: now) == [.write])
        #expect(life.state == .started)
        #expect(life.handle(.leaves, now: now) == [])
        #expect(life.handle(.reattached(.init()), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.interrupted))
        life = upload(.started, isRepeatable: false)
        #expect(life.handle(.reattached(.init(hasPlace: true)), now: now) == [.transfer])
        #expect(life.handle(.transferred(answer, hidden: nil), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.finished(answer)))
        // Nor a download by POST, but for one whose file is here.
        let order = TaskLife.Terms(isDownload: true, isRepeatable: false, expires: 2_000)
        life = TaskLife(order, .waiting)
        #expect(life.handle(.reattached(.init()), now: now) == [.transfer])
        life = TaskLife(order, .started)
        #expect(life.handle(.reattached(.init()), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.interrupted))
        life = TaskLife(order, .arrived(whole, answer))
        #expect(life.handle(.reattached(.init()), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.interrupted))
    }

    @Test func `what has stayed here is sent by whoever comes next`() {
        var life = upload(isRepeatable: false)
        #expect(life.handle(.reattached(.init()), now: now) == [.transfer])
        #expect(life.handle(.stayed, now: now) == [])
        #expect(life.handle(.leaves, now: now) == [.write])
        #expect(life.handle(.stayed, now: now) == [.write])
        #expect(life.state == .waiting)
        #expect(life.handle(.reattached(.init()), now: now) == [.transfer])
        // What may be sent twice leaves no note of it.
        life = upload()
        #expect(life.handle(.leaves, now: now) == [])
        #expect(life.state == .waiting)
    }

    @Test func `what has expired is not begun, and what takes too long ends so`() {
        var life = download()
        #expect(life.handle(.reattached(.init()), now: 2_000) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.expired))
        life = download()
        #expect(life.handle(.transferFailed(Failure(.timedOut, "")), now: 2_000) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.expired))
        life = download()
        _ = life.handle(.transferFailed(Failure(.timedOut, "")), now: now)
        #expect(life.state == .ended(.failed(Failure(.timedOut, ""))))
        // It is here: whether it is late is no longer of interest.
        life = download()
        #expect(life.handle(.reattached(.init(hidden: whole)), now: 3_000) == [.write, .place])
    }

    @Test func `a file that has changed is not uploaded`() {
        var life = upload()
        #expect(life.handle(.reattached(.init(bodyIsSame: false)), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.failed(.fileChanged)))
    }

    @Test func `a cancelled task stays cancelled`() {
        var life = download()
        #expect(life.handle(.cancel, now: now) == [.write, .stop])
        #expect(life.handle(.cancel, now: now) == [])
        var killed = life
        #expect(killed.handle(.reattached(.init(hidden: whole)), now: now) == [.write, .clean, .deliver])
        #expect(killed.state == .ended(.cancelled))
        #expect(life.handle(.transferred(answer, hidden: whole), now: now) == [.write, .clean, .deliver])
        #expect(life.state == .ended(.cancelled))
        var sent = upload(.cancelling)
        _ = sent.handle(.transferred(answer, hidden: nil), now: now)
        #expect(sent.state == .ended(.finished(answer)))
        var late = download(.ended(.finished(nil)))
        #expect(late.handle(.cancel, now: now) == [])
    }

    @Test func `an event is acknowledged when there is one, and an end comes once`() {
        var life = download()
        #expect(life.handle(.acknowledge, now: now) == [])
        life = download(.ended(.expired))
        #expect(life.handle(.transferred(answer, hidden: whole), now: now) == [])
        #expect(life.handle(.transferFailed(.fileGone), now: now) == [])
        #expect(life.handle(.placed, now: now) == [])
        #expect(life.state == .ended(.expired))
    }
}
