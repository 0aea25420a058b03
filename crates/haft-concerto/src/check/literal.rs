//! Literals of structs, schemas and variants: every field that is needed, none that is not there.

use std::collections::{HashMap, HashSet};

use super::control::is_empty_braces;
use super::{Checker, Code, Ty};
use crate::ast::{Field, StructLit, VariantData};
use crate::symbols::{Symbol, TYPES};

impl Checker<'_> {
    pub(super) fn struct_literal(&mut self, lit: &StructLit) -> Ty {
        let values = lit.fields.iter();
        let types: Vec<Ty> = values.map(|(_, value)| self.expr(value)).collect();
        self.twice(lit.fields.iter().map(|(name, _)| name), "field");
        let own = lit
            .path
            .single()
            .is_some_and(|it| TYPES.contains(&it.text.as_str()));
        let found = self.symbols.resolve(self.module, &lit.path);
        let home = found
            .as_ref()
            .map_or(0, |(full, _)| self.symbols.home(full));
        let (full, fields) = match found {
            Some((full, Symbol::Struct(it) | Symbol::Schema(it))) => (full, &it.fields),
            Some((full, Symbol::Variant(_, it))) => {
                let VariantData::Fields(fields, _) = &it.data else {
                    let text = format!("`{}` has no fields", lit.path.text());
                    self.tell(Code::E010, lit.path.span, text);
                    return Ty::Unknown;
                };
                let of = full.rsplit_once("::").map_or(full.as_str(), |(of, _)| of);
                (of.to_owned(), fields)
            }
            Some((_, Symbol::Alias(_))) => return Ty::Unknown,
            _ if own => return Ty::Unknown,
            _ => {
                self.undefined(&lit.path);
                return Ty::Unknown;
            }
        };
        self.literal_fields(lit, &types, fields, home);
        Ty::Named(full)
    }

    fn literal_fields(&mut self, lit: &StructLit, types: &[Ty], fields: &[Field], home: usize) {
        let of = lit.path.text();
        let mut all_known = true;
        let by_name: HashMap<&str, &Field> = fields
            .iter()
            .map(|it| (it.name.text.as_str(), it))
            .collect();
        for ((name, value), found) in lit.fields.iter().zip(types) {
            let Some(field) = by_name.get(name.text.as_str()) else {
                let text = format!("`{of}` has no field `{}`", name.text);
                let names = fields.iter().map(|it| it.name.text.as_str());
                let near = self.near(&name.text, names);
                self.tell_near(Code::E010, name.span, text, near);
                all_known = false;
                continue;
            };
            let declared = self.meaning_in(home, &field.ty);
            if !found.suits(&declared) && !is_empty_braces(value) {
                let name = &name.text;
                let text = format!("the field `{name}` is `{declared}`, and this is `{found}`");
                self.tell_mismatch(Code::W010, found, &declared, (value.span, text));
            }
        }
        // A field with a wrong name is the one that is missing.
        if !all_known {
            return;
        }
        let given: HashSet<&str> = lit.fields.iter().map(|(it, _)| it.text.as_str()).collect();
        let missing: Vec<String> = fields
            .iter()
            .filter(|it| !given.contains(it.name.text.as_str()))
            .filter(|it| !it.optional && it.default.is_none())
            .filter(|it| !matches!(self.meaning_in(home, &it.ty), Ty::Option(_) | Ty::Nil))
            .map(|it| format!("`{}`", it.name.text))
            .collect();
        if !missing.is_empty() {
            let what = if missing.len() == 1 {
                "field"
            } else {
                "fields"
            };
            let text = format!("`{of}` is made without its {what} {}", missing.join(", "));
            let help = "give it here, or declare it with a default: `name: Type = value`";
            self.tell_with_help(Code::W011, lit.path.span, text, help);
        }
    }
}
