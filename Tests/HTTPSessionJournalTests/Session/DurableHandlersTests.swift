import Expectations
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
}
