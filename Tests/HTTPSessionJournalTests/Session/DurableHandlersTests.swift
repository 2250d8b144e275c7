import Expectations
import HTTPSession
import NetworkLab
import Testing

@testable import HTTPSessionJournal

struct DurableHandlersTests {
    @Test func `a handler receives only the events of its own name, not those of a canonically equivalent one`() {
        var handlers = DurableHandlers()
        handlers.register("tok-\u{E9}") { _ in }
        #expect(handlers.handler("tok-\u{E9}") != nil)
        expectNil(handlers.handler("tok-e\u{301}"))
        expectNil(handlers.handler(nil))
        handlers.register("tok-e\u{301}") { _ in }
        #expect(handlers.handler("tok-\u{E9}") != nil && handlers.handler("tok-e\u{301}") != nil)
    }

    private final class Captured: Sendable {}

    @Test func `a durable session that is closed releases its handlers`() async throws {
        let folder = try ScratchDirectory()
        weak var event: Captured?
        weak var transfer: Captured?
        let session: DurableSession
        do {
            let objects = (Captured(), Captured())
            (event, transfer) = objects
            var handlers = DurableHandlers()
            handlers.register("a") { [object = objects.0] _ in withExtendedLifetime(object) {} }
            session = try await DurableSession.open(
                identifier: "org.example.handlers", directory: folder.url("state"), configuration: localConfiguration(),
                handlers: handlers,
                transferHandlers: TransferHandlers(response: { [object = objects.1] _ in withExtendedLifetime(object) { .allow } }
                ))
        }
        #expect(event != nil && transfer != nil)
        await session.close()
        while event != nil || transfer != nil { await Task.yield() }
        withExtendedLifetime(session) {}
    }
}
