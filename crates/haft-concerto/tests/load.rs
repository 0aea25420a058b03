//! Files that were not written by a compiler, or by a newer one: they are refused, never run.
#![allow(clippy::expect_used)] // helpers of tests

use haft_concerto::ir::{Function, Instruction, Module, Opcode};
use haft_concerto::load::{self, LoadErrorKind};

fn module(code: Vec<Instruction>) -> Module {
    let mut module = Module::new("test", "test.conc");
    module.functions.push(Function {
        name: "main".into(),
        module: "test".into(),
        visibility: "private".into(),
        params: Vec::new(),
        return_type: "nil".into(),
        is_async: false,
        locals: Vec::new(),
        instructions: code,
        receiver: None,
        captures: Vec::new(),
        aliases: Vec::new(),
        source: None,
    });
    module
}

fn op(op: Opcode) -> Instruction {
    Instruction::new(op)
}

fn refused(code: Vec<Instruction>) -> LoadErrorKind {
    load::load(module(code)).expect_err("it is refused").kind
}

#[test]
fn an_unknown_opcode_is_refused_where_it_stands() {
    let json = module(vec![op(Opcode::Push), op(Opcode::Return)])
        .to_json()
        .replace("\"PUSH\"", "\"TELEPORT\"");
    let error = load::load(Module::from_json(&json).expect("it reads")).expect_err("refused");
    assert_eq!(
        error.kind,
        LoadErrorKind::Underflow {
            takes: 1,
            height: 0
        }
    );
    let json = json.replace("\"RETURN\"", "\"TELEPORT\"");
    let error = load::load(Module::from_json(&json).expect("it reads")).expect_err("refused");
    assert_eq!((error.kind, error.place), (LoadErrorKind::Opcode, Some(0)));
}

#[test]
fn a_jump_out_of_the_function_is_refused() {
    assert_eq!(
        refused(vec![op(Opcode::Jump).offset(7)]),
        LoadErrorKind::Jump(7)
    );
    assert_eq!(
        refused(vec![op(Opcode::Jump)]),
        LoadErrorKind::Missing("offset")
    );
}

#[test]
fn a_constant_that_is_not_there_is_refused() {
    assert_eq!(
        refused(vec![op(Opcode::LoadConst).arg(3), op(Opcode::Return)]),
        LoadErrorKind::Constant(3)
    );
}

#[test]
fn a_stack_that_does_not_fit_is_refused() {
    assert_eq!(
        refused(vec![op(Opcode::Add)]),
        LoadErrorKind::Underflow {
            takes: 2,
            height: 0
        }
    );
    // One way pushes, the other does not.
    let code = vec![
        op(Opcode::Push).arg(true),
        op(Opcode::JumpIfTrue).offset(3),
        op(Opcode::Push).arg(1),
        op(Opcode::Push).arg(2),
        op(Opcode::Return),
    ];
    assert!(matches!(refused(code), LoadErrorKind::Imbalance { .. }));
    // A loop that grows.
    let code = vec![op(Opcode::Push).arg(1), op(Opcode::Jump).offset(0)];
    assert!(matches!(refused(code), LoadErrorKind::Imbalance { .. }));
}

#[test]
fn members_that_an_opcode_needs_are_asked_for() {
    assert_eq!(
        refused(vec![op(Opcode::LoadLocal)]),
        LoadErrorKind::Missing("name")
    );
    let code = vec![op(Opcode::Push), op(Opcode::PlaceSet).name("nobody")];
    assert_eq!(refused(code), LoadErrorKind::Member("name"));
    let code = vec![op(Opcode::BuildStruct).type_name("P").count(0).arg(5)];
    assert_eq!(refused(code), LoadErrorKind::Member("arg"));
    let code = vec![op(Opcode::MakeClosure).name("nobody").count(0)];
    assert_eq!(refused(code), LoadErrorKind::Function("nobody".into()));
    let huge = vec![op(Opcode::Push), op(Opcode::Call).argc(u32::MAX)];
    assert!(matches!(refused(huge), LoadErrorKind::Underflow { .. }));
}

#[test]
fn versions_that_haft_does_not_know_are_refused() {
    let json = module(Vec::new())
        .to_json()
        .replace("\"0.1.0\"", "\"0.2.0\"");
    let error = Module::from_json(&json).expect_err("it is refused");
    assert!(error.to_string().contains("0.2.0"), "{error}");
}

#[test]
fn code_that_is_never_reached_is_not_looked_at() {
    let code = vec![op(Opcode::Push).arg(1), op(Opcode::Return), op(Opcode::Add)];
    assert!(load::load(module(code)).is_ok());
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }
}

struct Silent;

impl haft_concerto::vm::Output for Silent {
    fn print(&mut self, _: &str) {}
    fn log(&mut self, _: &str) {}
}

#[test]
fn files_that_somebody_changed_are_refused_or_run_but_never_break_the_machine() {
    let text = include_str!("corpus/reference/language.conc");
    let source = haft_concerto::Source::new("language.conc", text);
    let compiled = haft_concerto::compile(&source, &haft_concerto::Options::default());
    let whole = compiled.ir.expect("it compiles");
    let limits = haft_concerto::vm::Limits {
        depth: 200,
        steps: Some(20_000),
        memory: 16,
    };
    let mut loaded = 0;
    for seed in 0..4000 {
        let mut random = Random(seed);
        let mut changed = whole.clone();
        for _ in 0..=random.below(3) {
            let function = random.below(changed.functions.len());
            let donor = random.below(changed.functions.len());
            let other = changed.functions[donor].instructions.clone();
            let code = &mut changed.functions[function].instructions;
            if code.is_empty() || other.is_empty() {
                continue;
            }
            let place = random.below(code.len());
            let from = &other[random.below(other.len())];
            match random.below(6) {
                0 => code[place] = from.clone(),
                1 => code[place].op = from.op,
                2 => code[place].name.clone_from(&from.name),
                3 => code[place].arg.clone_from(&from.arg),
                4 => code[place].offset = u32::try_from(random.below(code.len() + 1)).ok(),
                _ => {
                    code.remove(place);
                }
            }
        }
        let Ok(program) = load::load(changed) else {
            continue;
        };
        loaded += 1;
        let permissions = haft_concerto::natives::Permissions::default();
        let mut machine =
            haft_concerto::vm::Machine::new(program, permissions, limits, Box::new(Silent));
        // However it ends.
        let _ = haft_concerto::host::Offline::new(&mut machine, |_, _, _| {}).run();
    }
    assert!(loaded > 300, "some of them run: {loaded}");
}

#[test]
fn a_catch_of_upstream_finds_the_next_one_by_itself() {
    use Opcode::*;
    // try { throw 5 } catch String(_) { 1 } catch Int(_) { 2 }
    let code = vec![
        op(TryBegin).offset(5),
        op(Push).arg(5),
        op(Throw),
        op(TryEnd),
        op(Jump).offset(11),
        op(Catch).type_name("String"),
        op(Pop),
        op(Push).arg(1),
        op(Return),
        op(Catch).type_name("Int"),
        op(Return),
        op(Push).arg(0),
        op(Return),
    ];
    let program = load::load(module(code)).expect("it loads");
    let mut machine = haft_concerto::vm::Machine::new(
        program,
        haft_concerto::natives::Permissions::default(),
        haft_concerto::vm::Limits::default(),
        Box::new(Silent),
    );
    let ended = haft_concerto::host::Offline::new(&mut machine, |_, _, _| {}).run();
    assert_eq!(ended.expect("it is caught").to_string(), "5");
}
