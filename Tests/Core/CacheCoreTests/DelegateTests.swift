import CacheCore
import Testing

@Suite("Delegate boxes") struct DelegateTests {
  private final class Target: Sendable {
    func doubled(_ number: Int) -> Int { number * 2 }
  }

  private actor Keeper {
    func doubled(_ number: Int) -> Int { number * 2 }
  }

  @MainActor private final class Screen {
    var shown = 0

    func show(_ number: Int) -> Int {
      shown += number
      return shown
    }
  }

  @Test("an empty box returns nil")
  func empty() async throws {
    #expect(Delegate<Int, Int>().call(1) == nil)
    #expect(!Delegate<Int, Int>().isSet)
    #expect(try await AsyncDelegate<Int, Int>().callAsync(1) == nil)
    #expect(!AsyncDelegate<Int, Int>().isSet)
  }

  @Test("a hook gets its target and its input")
  func calls() {
    let target = Target()
    var hook = Delegate<Int, Int>()

    hook.delegate(on: target) { (target, number) in target.doubled(number) }

    #expect(hook.call(4) == 8)
    #expect(hook(5) == 10)
    #expect(hook.isSet)
    withExtendedLifetime(target) {}
  }

  @Test("a hook without input is called without one")
  func void() async throws {
    let target = Target()
    var hook = Delegate<Void, Int>()
    var asyncHook = AsyncDelegate<Void, Int>()

    hook.delegate(on: target) { $0.doubled(3) }
    asyncHook.delegate(on: target) { $0.doubled(4) }

    #expect(hook.call() == 6 && hook() == 6)
    #expect(try await asyncHook.callAsync() == 8)
    withExtendedLifetime(target) {}
  }

  @Test("a hook does not retain its target, and its box is empty after the release")
  func weakTarget() async throws {
    var hook = Delegate<Int, Int>()
    var asyncHook = AsyncDelegate<Int, Int>()
    weak var observed: Target?
    do {
      let target = Target()
      observed = target
      hook.delegate(on: target) { (target, number) in target.doubled(number) }
      asyncHook.delegate(on: target) { (target, number) in target.doubled(number) }
    }

    #expect(observed == nil)
    #expect(hook.call(4) == nil && !hook.isSet)
    #expect(try await asyncHook.callAsync(4) == nil)
    #expect(!asyncHook.isSet)
  }

  @Test("a closure without a target is retained")
  func retained() async throws {
    let hook: Delegate<Int, Int>
    let asyncHook: AsyncDelegate<Int, Int>
    do {
      let target = Target()
      hook = Delegate { target.doubled($0) }
      asyncHook = AsyncDelegate { target.doubled($0) }
    }
    #expect(hook.isSet && hook(4) == 8)
    #expect(asyncHook.isSet)
    #expect(try await asyncHook.callAsync(4) == 8)
  }

  @Test("the last hook counts until it is removed, and a copy keeps its own")
  func replacement() {
    let target = Target()
    var hook = Delegate<Int, Int>()
    hook.delegate(on: target) { (_, number) in number }
    let copy = hook
    hook.delegate(on: target) { (_, number) in -number }

    #expect(hook.call(4) == -4)
    #expect(copy.call(4) == 4)
    hook.reset()
    #expect(hook.call(4) == nil && !hook.isSet)
    #expect(copy.isSet)
    withExtendedLifetime(target) {}
  }

  @Test("an async hook may belong to an actor or to the main actor")
  func actors() async throws {
    let (keeper, screen) = (Keeper(), Screen())
    var hook = AsyncDelegate<Int, Int>()

    hook.delegate(on: keeper) { (keeper, number) in await keeper.doubled(number) }
    #expect(try await hook.callAsync(4) == 8)

    hook.delegate(on: screen) { @MainActor (screen, number) in screen.show(number) }
    #expect(try await hook.callAsync(5) == 5)
    #expect(await screen.shown == 5)
    hook.reset()
    #expect(try await hook.callAsync(4) == nil)
  }

  @Test("the error of an async hook is a CacheError: its own, a cancellation or a refusal")
  func errors() async {
    struct Unwilling: Error {}
    let errors: [(any Error, CacheError.Code)] = [
      (CacheError(.damagedEntry, reason: "bad block"), .damagedEntry), (CancellationError(), .cancelled), (Unwilling(), .refused),
    ]
    for (error, code) in errors {
      let hook = AsyncDelegate<Int, Int> { _ in throw error }
      await #expect { try await hook.callAsync(1) } throws: { ($0 as? CacheError)?.code == code }
    }
  }
}
