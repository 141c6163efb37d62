import CacheNetworking
import Testing

@Suite("The delegate box") struct DelegateTests {
  private final class Target: Sendable {
    func doubled(_ number: Int) -> Int { number * 2 }
  }

  private actor Keeper {
    func doubled(_ number: Int) -> Int { number * 2 }
  }

  @Test("an empty hook answers nil")
  func empty() {
    let hook = Delegate<Int, Int>()

    #expect(hook.call(1) == nil)
    #expect(!hook.isSet)
  }

  @Test("a hook gets its target and its input")
  func calls() {
    let target = Target()
    let hook = Delegate<Int, Int>()

    hook.delegate(on: target) { (target, number) in target.doubled(number) }

    #expect(hook.call(4) == 8)
    #expect(hook(5) == 10)
    #expect(hook.isSet)
  }

  @Test("a hook without input is called without one")
  func void() {
    let target = Target()
    let hook = Delegate<Void, Int>()

    hook.delegate(on: target) { (target, _) in target.doubled(3) }

    #expect(hook.call() == 6)
    #expect(hook() == 6)
  }

  @Test("a hook does not keep its target alive, and is silent when that is gone")
  func weakTarget() {
    let hook = Delegate<Int, Int>()
    weak var observed: Target?
    do {
      let target = Target()
      observed = target
      hook.delegate(on: target) { (target, number) in target.doubled(number) }
    }

    #expect(observed == nil)
    #expect(hook.call(4) == nil)
    #expect(!hook.isSet)
  }

  @Test("the last hook that was set counts, until it is taken out")
  func replacement() {
    let target = Target()
    let hook = Delegate<Int, Int>()
    hook.delegate(on: target) { (_, number) in number }
    hook.delegate(on: target) { (_, number) in -number }

    #expect(hook.call(4) == -4)
    hook.reset()
    #expect(hook.call(4) == nil)
  }

  @Test("an async hook may be an actor's")
  func asyncHook() async {
    let keeper = Keeper()
    let hook = AsyncDelegate<Int, Int>()
    #expect(await hook.callAsync(4) == nil)

    hook.delegate(on: keeper) { (keeper, number) in await keeper.doubled(number) }

    #expect(await hook.callAsync(4) == 8)
    #expect(await hook(5) == 10)
    hook.reset()
    #expect(await hook.callAsync(4) == nil)
  }

  @Test("an async hook does not keep its target alive")
  func weakAsyncTarget() async {
    let hook = AsyncDelegate<Int, Int>()
    weak var observed: Target?
    do {
      let target = Target()
      observed = target
      hook.delegate(on: target) { (target, number) in target.doubled(number) }
    }

    #expect(observed == nil)
    #expect(await hook.callAsync(4) == nil)
    #expect(!hook.isSet)
  }
}
