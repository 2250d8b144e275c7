import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch_service

/// The status that the service manager shows around a reload.
@Suite(.timeLimit(.minutes(5))) struct KeeperReloadTests {
    @Test(arguments: [true, false])
    func `the state of the service follows the result of a reload`(isLoaded: Bool) throws {
        let shown = Locked<[String]>([])
        func wait(count: Int) throws -> [String] {
            let deadline = ContinuousClock.now + .seconds(60)
            while true {
                let present = shown.withLock { $0 }
                if present.count >= count { return present }
                guard ContinuousClock.now < deadline else { throw LabError("the keeper does not notify: \(present)") }
                usleep(10_000)
            }
        }
        let service = try RunningKeeper(notify: { notification in shown.withLock { $0.append(notification.text) } })
        let ready = try #require(try wait(count: 1).first)
        #expect(ready.hasPrefix("READY=1\nSTATUS=no targets, "))
        if isLoaded {
            let next = KeeperLoop.Loaded(configuration: Configuration(), settings: [])
            service.keeper.reload(.init(loaded: next)) { outcome in
                shown.withLock { $0.append("READY=1\nSTATUS=\(outcome.sentence)") }
            }
        } else {
            service.keeper.reloadFailed("a.yaml:1:1: unknown key") {
                shown.withLock { $0.append("READY=1\nSTATUS=keeping the previous configuration") }
            }
        }
        let texts = try wait(count: 3)
        expectEqual(
            texts[1],
            "READY=1\nSTATUS=\(isLoaded ? "the configuration was loaded: +0 −0 ~0" : "keeping the previous configuration")")
        expectEqual(texts[2], String(ready.dropFirst("READY=1\n".count)))
        service.stop()
    }
}
