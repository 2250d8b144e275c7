import Expectations
import Testing

@testable import EventLoop

@Suite struct WeakCacheTests {
    private final class Object: Sendable {}

    @Test func `an object is shared while it is referenced`() {
        let cache = WeakCache<Int, Object>()
        var object: Object? = cache.insert(Object(), for: 1)
        #expect(cache.object(for: 1) === object && cache.object(for: 2) == nil)
        object = nil
        expectNil(cache.object(for: 1))
    }

    @Test func `the first of two objects for a key stays when the second is released`() {
        let cache = WeakCache<Int, Object>()
        let (first, second) = (Object(), Object())
        #expect(cache.insert(first, for: 1) === first)
        #expect(cache.insert(second, for: 1) === first)
        cache.remove(ObjectIdentifier(second), for: 1)
        #expect(cache.object(for: 1) === first)
        cache.remove(ObjectIdentifier(first), for: 1)
        expectNil(cache.object(for: 1))
    }
}
